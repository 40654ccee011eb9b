# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""An agent of rails for tests, and a judge: written from src/rails/mailbox.h, no code shared.  It plays
controller and circuits for ranks of one machine.  Groups have colours; circuits of one colour stand at a time,
as if every change of phase were a change of all switches."""

import array
import collections
import ctypes
import mmap
import os
import select
import socket
import struct
import threading
import time

WORD = struct.Struct("=IIIIQIIiI")
LETTER = struct.Struct("=IiQQQQ24x")
HEAD, TAIL, READER, WRITER, LETTERS, ROOM = 0, 64, 68, 72, 128, 1024
RING = LETTERS + ROOM * LETTER.size
HELLO, WELCOME, GROUP, KNOWN, GOODBYE = 1, 2, 3, 4, 5
ARRIVE, END, WISH, GRANT = 1, 2, 3, 4
FUTEX, WAKE = 202, 1
QUIET = 60       # how often to listen
LIBC = ctypes.CDLL(None, use_errno=True)


class Rank:
    def __init__(self, number, sock):
        self.number, self.sock = number, sock
        memory = os.memfd_create("box", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(memory, 2 * RING)
        import fcntl
        fcntl.fcntl(memory, 1033, 2)    # F_ADD_SEALS, F_SEAL_SHRINK
        self.box = mmap.mmap(memory, 2 * RING)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.box))
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.read = self.written = 0
        self.goodbye = False
        word = WORD.pack(WELCOME, 1, 0, 0, 0, 0, 0, 0, 0)
        sock.sendmsg([word], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory, self.bell]))])
        os.close(memory)

    def number_at(self, ring, offset):
        return ctypes.c_uint32.from_buffer(self.box, ring * RING + offset).value

    def store(self, offset, number):
        """At once: struct.pack_into clears the bytes first, and the other side may read that."""
        ctypes.c_uint32.from_buffer(self.box, offset).value = number

    def letters(self):
        while self.number_at(0, HEAD) != self.read:
            kind, _, group, idx, _, _ = LETTER.unpack_from(self.box, LETTERS + self.read % ROOM * LETTER.size)
            self.read = (self.read + 1) % 2 ** 32
            self.store(TAIL, self.read)
            self.wake(0, TAIL)
            yield kind, group, idx

    def wake(self, ring, offset):
        LIBC.syscall(FUTEX, ctypes.c_void_p(self.address + ring * RING + offset), WAKE, 99, None, None, 0)

    def grant(self, group, idx, error=0):
        LETTER.pack_into(self.box, RING + LETTERS + self.written % ROOM * LETTER.size, GRANT, error, group, idx, 1, 0)
        self.written = (self.written + 1) % 2 ** 32
        self.store(RING + HEAD, self.written)
        self.wake(1, HEAD)


class Agent(threading.Thread):
    """COLOUR(members) -> what stands for them, None where they are free.  FAULTS is what ranks did wrong;
    LOG the operations that were granted, (members, group, idx), in order."""

    def __init__(self, path, colour):
        super().__init__(daemon=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(64)
        self.colour = colour
        self.ranks, self.groups, self.faults, self.log = {}, {}, [], []
        self.arrived = collections.defaultdict(set)     # (group, idx): ranks
        self.waiting = []                               # complete, in order
        self.open = {}                                  # (group, idx): ranks that have not ended
        self.next = collections.Counter()               # (rank, group): index
        self.stands, self.changes = None, 0
        self.quiet = 0                                  # how often nothing was sent while nothing was granted
        self.last = None                                # dies after as many operations
        self.over, self.wakeup = False, os.eventfd(0)
        self.start()

    def stop(self):
        self.over = True
        os.eventfd_write(self.wakeup, 1)
        self.join(30)

    def run(self):
        poll = select.epoll()
        poll.register(self.listener, select.EPOLLIN)
        poll.register(self.wakeup, select.EPOLLIN)
        by_fd = {}
        while not self.over:
            for fd, _ in poll.poll(1):
                if fd == self.listener.fileno():
                    sock = self.listener.accept()[0]
                    word = WORD.unpack(sock.recv(4096)[:WORD.size])
                    if word[0] != HELLO or word[2] in self.ranks:
                        self.faults.append("rank %d says hello twice" % word[2])
                    rank = self.ranks[word[2]] = Rank(word[2], sock)
                    for number in (sock.fileno(), rank.bell):
                        poll.register(number, select.EPOLLIN)
                        by_fd[number] = rank
                elif fd in by_fd:
                    if fd == by_fd[fd].bell:
                        try:
                            os.eventfd_read(fd)
                        except BlockingIOError:
                            pass
                    elif not self.word(by_fd[fd]):
                        poll.unregister(fd)
            for rank in list(self.ranks.values()):
                for letter in rank.letters():
                    self.letter(rank, *letter)
            self.serve()
            if self.last and len(self.log) >= self.last:
                break
        for rank in self.ranks.values():
            for letter in rank.letters() if self.over else ():     # what came after the last look
                self.letter(rank, *letter)
            rank.sock.close()

    def word(self, rank):
        data = rank.sock.recv(1 << 17)
        if not data:
            if not rank.goodbye:
                self.faults.append("rank %d died" % rank.number)
            return False
        kind, _, _, _, group, count, _, _, _ = WORD.unpack(data[:WORD.size])
        if kind == GOODBYE:
            rank.goodbye = True
        if kind == GROUP:
            members = struct.unpack("=%di" % count, data[WORD.size:])
            if self.groups.setdefault(group, members) != members or rank.number not in members:
                self.faults.append("rank %d makes a group of %s" % (rank.number, members))
            free = self.colour(members) is None
            rank.sock.send(WORD.pack(KNOWN, 1, 0, 0, group, 0, int(free), 0, 0))
        return True

    def letter(self, rank, kind, group, idx):
        key = group, idx
        if kind == ARRIVE:
            if self.next[rank.number, group] != idx:
                self.faults.append("rank %d reaches %s out of order" % (rank.number, key))
            self.next[rank.number, group] = idx + 1
            self.arrived[key].add(rank.number)
            if self.arrived[key] == set(self.groups[group]):
                self.waiting.append(key)
        elif kind == END:
            if rank.number not in self.open.get(key, ()):
                self.faults.append("rank %d ends %s, which is not open" % (rank.number, key))
            else:
                self.open[key].discard(rank.number)
                if not self.open[key]:
                    del self.open[key]

    def serve(self):
        for key in list(self.waiting):
            colour = self.colour(self.groups[key[0]])
            if colour != self.stands:
                if self.open:
                    return      # the oldest has its way
                self.stands, self.changes = colour, self.changes + 1
            if not self.open and self.quiet < QUIET:
                self.listen()
            self.waiting.remove(key)
            self.open[key] = set(self.groups[key[0]])
            self.log.append((self.groups[key[0]],) + key)
            for number in self.groups[key[0]]:
                self.ranks[number].grant(*key)

    def traffic(self):
        """Bytes that were sent in the network of the ranks."""
        rank = next(iter(self.ranks.values()))
        pid = struct.unpack("iii", rank.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        with open("/proc/%d/net/dev" % pid) as handle:
            return sum(int(line.split()[9]) for line in handle.readlines()[2:])

    def listen(self):
        """No operation is open: what was sent has left, and what waits is not sent yet."""
        before = self.traffic()
        time.sleep(0.02)
        sent = self.traffic() - before
        self.quiet += 1
        if sent > 4000:     # PyTorch meets without a gate
            self.faults.append("%d bytes were sent while no operation was granted" % sent)
