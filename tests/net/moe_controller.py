# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The controller of a job in a region, for moe_train.py and ocs_moe_mpi.c: moe_steer.py that has ocsd change the job's own
circuits.  It runs in the job, on its first node, until it gets SIGTERM.

    moe_controller.py CONFIG

CONFIG (JSON): socket (of ocsd), servers, degree, mbit, layers, mode, folder and name (of its sockets), stage, and, if
wanted, record (of a training before) and state (for `ocsctl region show`).  It prints what it did."""

import json
import os
import pathlib
import select
import signal
import socket
import sys
import time

import moe_steer
import moelab


class JobRegion(moelab.Wiring):
    """The job's one group of servers.  $SLURM_OCS_DIR has the key that opens its circuits and nothing else."""

    def __init__(self, config):
        self.n, self.alpha, self.mbit = config["servers"], config["degree"], config["mbit"]
        self.stage, self.folder, self.prefix = (pathlib.Path(config[k]) for k in ("stage", "folder", "name"))
        folder = pathlib.Path(os.environ["SLURM_OCS_DIR"])
        self.key = (folder / "moe.key").read_text(encoding="ascii").strip()
        self.epoch = int((folder / "epoch").read_text(encoding="ascii"))
        self.job = int(os.environ["SLURM_JOB_ID"])
        self.seq, self.waited, self.failed = 0, 0.0, 0
        self.socket, self.sock, self.again = config["socket"], None, 0.0
        self.forget()
        self._ask([])       # those that the job began with go

    def _connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.socket)
        self.lines = self.sock.makefile("r")

    def wire(self, circuits):
        """While ocsd does not do what it is asked for, those circuits are used that stand whatever it did; it is asked again a
        second later."""
        if time.monotonic() < self.again:
            return
        before = dict(self.circuits)
        try:
            if not self.sock:
                self._connect()
            if self._closed():
                raise ConnectionError("ocsd is gone")       # nothing was sent: those before stand
        except OSError as error:
            self._fail(error)
            return
        try:
            super().wire(circuits)
        except (OSError, ValueError, RuntimeError) as error:
            self._fail(error)
            self.circuits = {link: ends for link, ends in before.items() if self.circuits.get(link) == ends}

    def _fail(self, error):
        print(f"circuits stay as they are: {error}", file=sys.stderr, flush=True)
        self.failed += 1
        self.again = time.monotonic() + 1
        if self.sock:
            self.sock.close()
        self.sock = None

    def _closed(self):
        ready, _, _ = select.select([self.sock], [], [], 0)
        return bool(ready) and not self.sock.recv(1, socket.MSG_PEEK)

    def _change(self, cut, made):
        self._ask([[*a, *b] for a, b in self.circuits.values()])

    def _ask(self, circuits):
        """Until ocsd has read back from the switch that they stand, and no others."""
        start = time.monotonic()
        if not self.sock:
            self._connect()
        self.seq += 1
        self.sock.sendall((json.dumps({
            "op": "region", "id": self.seq, "job": self.job, "epoch": self.epoch, "key": self.key, "seq": self.seq,
            "groups": [{"group": 0, "circuits": circuits}]}) + "\n").encode())
        for line in self.lines:
            reply = json.loads(line)
            if reply.get("id") == self.seq:
                break
        else:
            raise RuntimeError("ocsd is gone")
        group = reply.get("groups", [{}])[0]
        if not reply.get("ok") or group.get("stage") != "verified":
            raise RuntimeError(f"ocsd: {reply}")
        self.waited += time.monotonic() - start


def main():
    config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="ascii"))
    record = config.get("record")
    region = JobRegion(config)
    steer = moe_steer.Steer(region, config["layers"], config["mode"], state=config.get("state"),
                            record=json.loads(pathlib.Path(record).read_text(encoding="ascii"))["passes"] if record else None,
                            token_bytes=config.get("token_bytes", 1))
    signal.sigwait([signal.SIGTERM])
    print(json.dumps({"changes": region.seq, "failed": region.failed, "cut": region.exchanges, "waited": region.waited,
                      "passes": len(steer.trace)}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    main()
