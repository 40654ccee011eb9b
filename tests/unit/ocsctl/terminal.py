# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A terminal for programs that draw on it: what stands on its screen, and what they left behind."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

TOKEN = re.compile(rb"\x1b\[([?0-9;]*)([A-Za-z])|([^\x1b])", re.S)


class Terminal:
    def __init__(self, command, rows=24, columns=80, env=None):
        self.master, slave = pty.openpty()
        self.rows, self.columns = rows, columns
        self.raw = b""			# all that was written
        self.pending = b""
        self.lines, self.row, self.column = [""] * rows, 0, 0
        self.colours = set()
        self.alternate, self.cursor = False, True
        self.size(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env,
                                      start_new_session=True, preexec_fn=self.own)

    def own(self):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def size(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines = (self.lines + [""] * rows)[:rows]
        self.row = min(self.row, rows - 1)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def put(self, byte):
        if byte == b"\n":
            self.row, self.column = min(self.row + 1, self.rows - 1), 0
        elif byte == b"\r":
            self.column = 0
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + byte.decode("latin-1") + line[self.column + 1:]
            self.column += 1

    def control(self, numbers, letter):
        if letter == b"H":
            self.row = self.column = 0
        elif letter == b"K":
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif letter == b"J":
            self.lines[self.row] = self.lines[self.row][:self.column]
            self.lines[self.row + 1:] = [""] * (self.rows - self.row - 1)
        elif letter == b"m":
            self.colours.add(numbers.decode())
        elif numbers == b"?1049":
            self.alternate = letter == b"h"
        elif numbers == b"?25":
            self.cursor = letter == b"h"
        else:
            raise ValueError("unknown sequence %r %r" % (numbers, letter))

    def read(self, seconds=0.1):
        while select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:		# the last writer is gone
                break
            if not data:
                break
            self.raw += data
            self.pending += data
            seconds = 0
        at = 0
        for token in TOKEN.finditer(self.pending):
            if token.start() != at:
                break
            at = token.end()
            if token.group(3):
                self.put(token.group(3))
            else:
                self.control(token.group(1), token.group(2))
        self.pending = self.pending[at:]

    def text(self):
        return "\n".join(line.rstrip() for line in self.lines).rstrip()

    def shows(self, *words, without=(), seconds=30):
        """Waits until the screen has all words; returns the screen or None."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()
            text = self.text()
            if all(w in text for w in words) and not any(w in text for w in without):
                return text
        return None

    def left(self, seconds=30):
        """Waits until the screen of the shell is back."""
        end = time.monotonic() + seconds
        while self.alternate and time.monotonic() < end:
            self.read()
        return not self.alternate

    def key(self, byte):
        os.write(self.master, byte)

    def end(self, seconds=30):
        """Waits for the program; returns its exit status."""
        end = time.monotonic() + seconds
        while self.child.poll() is None and time.monotonic() < end:
            self.read()
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.read()
        self.same = termios.tcgetattr(self.slave) == self.before
        os.close(self.slave)
        os.close(self.master)
        return self.child.returncode
