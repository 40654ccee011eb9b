# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A process that answers where ocsd should, with the credentials of whoever runs it: it takes
over what it can of slurmctld, prologs and ocsctl.  Arguments: host, port, job to be failed.
Each connection tries the next way; standard output says which, and what it learned."""

import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import threading

CHALLENGE = "00112233445566778899aabbccddeeff"
FORGED = [{"event": "job_failed", "job": int(sys.argv[3]), "epoch": 0, "switch": "ocs-x-0-0",
           "error": "forged"}, {"event": "superseded", "controller": 0}]
REFUSAL = {"id": 1, "ok": False, "code": 1, "error": "superseded", "superseded": True}


def plain(value):
    return json.dumps(value).encode() + b"\n"


def greeting(uid):
    return plain({"challenge": CHALLENGE, "uid": uid, "key": False})


WAYS = [
    ("own", greeting(os.getuid()), b""),
    ("lie, silence", greeting(0), b""),
    ("lie, accepted", greeting(0), plain({"id": 1, "ok": True, "uid": 0})),
    ("lie, refused", greeting(0), plain(REFUSAL)),
    ("lie, events", greeting(0), b"".join(plain(event) for event in FORGED)),
    ("lie, old seal", greeting(0), b"0" * 64 + b" " + plain({"id": 1, "ok": True, "uid": 0})),
    ("no greeting", plain(REFUSAL) + b"".join(plain(event) for event in FORGED), b""),
    ("half", b'{"challenge":"', b""),
]


class Session:
    """What follows when a credential could be read: everything is believed."""

    def __init__(self, stream, key):
        self.stream, self.key, self.number = stream, key.encode(), 0

    def say(self, value):
        text = json.dumps(value)
        mac = hmac.new(self.key, ("ocsd %d %s" % (self.number, text)).encode(), hashlib.sha256)
        self.number += 1
        self.stream.sendall(("%s %s\n" % (mac.hexdigest(), text)).encode())

    def serve(self, lines):
        self.say({"id": 1, "ok": True, "uid": 0})
        for line in lines:
            request = json.loads(line.split(" ", 1)[1])
            if request["op"] == "subscribe":
                for entry in request["jobs"]:
                    FORGED[0]["epoch"] = entry["epoch"]
            self.say({"id": request["id"], "ok": True, "max_epoch": 0, "term": 1, "jobs": []})
            for event in FORGED:
                self.say(event)


def report(name, learned):
    """In one piece: several threads do."""
    os.write(1, ("%s: %s\n" % (name, learned)).encode())


def meet(stream, name, hello, answer):
    stream.sendall(hello)
    lines = stream.makefile()
    line = lines.readline()
    learned = "nothing"
    if line:
        learned = "a secret"
        credential = json.loads(line).get("credential", "")
        done = subprocess.run(["unmunge", "--metadata=/dev/null"], input=credential,
                              text=True, capture_output=True, check=False)
        if done.returncode == 0:
            learned = "everything"
            report(name, learned)
            Session(stream, done.stdout.split()[-1]).serve(lines)
        else:
            stream.sendall(answer)
            lines.readline()
    report(name, learned)
    stream.close()


def guarded(*arguments):
    try:
        meet(*arguments)
    except OSError:
        pass


def main():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((sys.argv[1], int(sys.argv[2])))
    listener.listen(100)
    number = 0
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=guarded, args=(stream, *WAYS[number % len(WAYS)]),
                         daemon=True).start()
        number += 1


main()
