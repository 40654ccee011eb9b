# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Switches that repeat their password in all they say, and send bytes that move a cursor:
neither is seen by anybody, whatever is asked."""

import json
import os
import re

import pytest

from cluster import Cluster
from conftest import living

PASSWORD = "Tr0ub4dor&3-zebra"
# Terminal control, eight bits of it, the direction turned; as a drain reason and in refusals.
RAW = "\033[2J\x9bgone\u202e\u009b1m"
# SCPI knows no login: that switch was given nothing that it could repeat.
FORMS = ("wrong password: " + PASSWORD.upper(), "nothing", "VHIwdWI0ZG9yJjMtemVicmE=")


class Talkative(Cluster):
    """A fabric whose dimensions speak three protocols."""

    def configure(self):
        super().configure()
        self.write("etc/ocs.cred", "user=admin\npassword=%s\n" % PASSWORD, 0o600)

    def ocs_yaml(self):
        return super().ocs_yaml().replace("  admins:", "  metrics: 127.0.0.1:9400\n  admins:")


@pytest.fixture(scope="module")
def fabric():
    """Eight 2x2x2 cubes: 32 slurmds, 12 switches."""
    with living(Talkative, cubes=8, edge=2, tile=(1, 1, 2), languages=("calient", "scpi", "netconf"),
                config={"MinJobAge": "600"}) as cluster:
        yield cluster


def leaks(text):
    """What of the password TEXT has, five characters in a row being enough."""
    low = text.lower()
    pieces = [PASSWORD[i:i + 5].lower() for i in range(len(PASSWORD) - 4)] + [FORMS[2].lower()[2:]]
    return [piece for piece in pieces if piece in low]


def clean(text):
    """Whether it may go to a terminal."""
    return not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or
                ord(c) in (0x202e, 0xfffd)]


def asked(fabric):
    """Everything that a user or an administrator can ask for."""
    commands = (
        ["scontrol", "show", "topology"], ["scontrol", "show", "job"], ["scontrol", "show", "nodes"],
        ["squeue", "-o", "%i %r %k"], ["sinfo", "-R"],
        ["curl", "-s", "http://127.0.0.1:9400/metrics"],
    ) + tuple(["ocsctl"] + words.split() + ["--fabric", fabric.yaml] for words in (
        "show fabric", "show switch", "show switch --json", "show circuit", "show port", "map",
        "check"))
    for command in commands:
        done = fabric.run(command, check=False)
        yield " ".join(command), done.stdout + done.stderr


def files(fabric):
    """Everything on disk that is not the switches' own."""
    for folder, _, names in os.walk(fabric.dir):
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith("emulator.") or name == "ocs.cred" or not os.path.isfile(path):
                continue
            with open(path, errors="replace") as handle:
                yield path, handle.read()


def nothing_leaks(fabric):
    for name, text in list(asked(fabric)) + list(files(fabric)):
        assert not leaks(text), (name, leaks(text), [line for line in text.splitlines() if leaks(line)][:3])
    for name, text in asked(fabric):
        assert clean(text), (name, [line for line in text.splitlines() if not clean(line)][:3])


def reason(fabric, switch):
    return fabric.ocsctl("show", "switch", switch)["switches"][0].get("reason") or ""


def test_refusals(fabric):
    """Refused changes, by ports and by whole switches, messages in between."""
    for dim, words in zip("xyz", FORMS):
        # XML has no escape.
        words += RAW.replace("\033", "") if dim == "z" else RAW
        for first in (0, 1):
            for second in (0, 1):
                name = "ocs-%s-%d-%d" % (dim, first, second)
                fabric.emulator("say", name, words)
                fabric.emulator("fault", name, "deny")
                fabric.emulator("notice", name, "port: " + words)
    job = fabric.sbatch("--shape=4x4x4")
    fabric.until(lambda: "ocs-" in fabric.run(["scontrol", "show", "job", str(job)]).stdout, 60,
                 "a comment that names a switch")
    fabric.until(lambda: all(fabric.run(["grep", "-c", "ocs-%s.*not shown" % dim, fabric.path("ocsd.log")],
                                        check=False).returncode == 0 for dim in "xz"), 30,
                 "each protocol to be refused")
    nothing_leaks(fabric)
    fabric.run(["scancel", str(job)])


def test_refused_logins(fabric):
    for name in ("ocs-x-0-0", "ocs-z-0-0"):
        fabric.emulator("say", name, FORMS[0])
        fabric.emulator("fault", name, "login")
    for name in ("ocs-x-0-0", "ocs-z-0-0"):
        fabric.until(lambda: "refused the login of admin" in reason(fabric, name), 30,
                     lambda: "%s to have failed: %s" % (name, reason(fabric, name)))
        # slurmctld hears of it a moment later, with the first of the sentences that it failed with.
        fabric.until(lambda: re.search("Switch=%s .*State=FAILED Reason=.*refused" % name, fabric.out(
            ["scontrol", "show", "topology"])), 30, "slurmctld to say so")
        # The name of a switch stands once before its sentence.
        assert "%s: switch %s" % (name, name) not in fabric.out(["scontrol", "show", "topology"])
    nothing_leaks(fabric)
    with open(fabric.path("ocsd.log")) as handle:
        log = handle.read()
    for line in log.splitlines():
        assert "switch ocs-x-0-0: switch ocs-x-0-0" not in line and \
            "switch ocs-z-0-0: switch ocs-z-0-0" not in line, line


def test_reasons(fabric):
    """What an administrator writes, or a node's reason, reaches no terminal raw."""
    fabric.ocsctl("drain", "port", "ocs-x-1-1:3", "--reason", "dirty " + RAW)
    fabric.ocsctl("drain", "switch", "ocs-y-1-1", "--reason", "dirty " + RAW)
    fabric.run(["scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=node " + RAW])
    rows = fabric.ocsctl("show", "fabric")["drains"]
    assert {row["reason"] for row in rows if row["name"] == "ocs-x-1-1:3"} == {"dirty ?[2J?gone??1m"}
    for name, text in asked(fabric):
        if name.startswith("ocsctl") or name == "scontrol show topology":
            assert clean(text), (name, [line for line in text.splitlines() if not clean(line)][:3])
