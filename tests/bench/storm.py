#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A storm on a real cluster: storm.py [--minutes N] [--seed S] [--keep] | --self-test

Jobs of random shapes come and go while daemons are killed, stopped and started, switches
refuse, lie, hang and reboot, hands move circuits, nodes go down, the disk of ocsd fills up,
and a user tries what is not his.  Then everything is mended, and storm_judge.py looks at
what the switches and the jobs noted.  Needs root, OCS_STAGE and OCS_SLURM (as the cluster
tests do).  The last line is the verdict; the exit status is 0 if it is good."""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "slurm"), HERE]

import storm_judge                                      # noqa: E402
from cluster import Cluster, ClusterError, tail         # noqa: E402

SHAPES = ("2", "2x2", "4x2", "2x2x2", "4x2x2", "4x2x2", "4x4", "4x4x2", "8x2x2", "2x2x4", "6x2",
          "3x2x2", "16", "8x2", "8x4")
# What a job notes of itself: see storm_judge.py.
SCRIPT = r"""#!/bin/bash
f={runs}/$SLURM_JOB_ID.${{SLURM_RESTART_COUNT:-0}}.$(date +%s%N)
date +%s.%N >$f.beat
cat $SLURM_OCS_DIR/placement.json >$f.placement
(timeout 10 ocs-emulator --control unix:{emulator} table && date +%s.%N) >$f.table 2>/dev/null || rm -f $f.table
[ {step} = 0 ] || srun --overlap -N $SLURM_JOB_NUM_NODES bash -c 'date +%s.%N' >$f.tasks 2>/dev/null &
end=$((SECONDS + {seconds}))
while [ $SECONDS -lt $end ]; do sleep 0.5; date +%s.%N >>$f.beat; done
"""
FLOOD = r"""
import json, socket, time
end = time.time() + 4
while time.time() < end:
    try:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(1)
        s.connect("%s")
        for n in range(200):
            s.sendall(json.dumps({"op": "show", "what": "circuit", "id": n}).encode() + b"\n")
        s.sendall(b"{" * 5000)
        s.recv(100)
    except OSError:
        time.sleep(0.02)
"""


class Stormy(Cluster):
    """Its switches keep their circuits over a power cut, and ocsd has a small disk."""

    def start_emulator(self):
        os.makedirs(self.path("switches"), exist_ok=True)
        os.makedirs(self.path("runs"), exist_ok=True)
        os.chmod(self.path("runs"), 0o777)
        self.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "tmpfs", self.path("ocsd")])
        self.emulator_up()
        self.until(lambda: self.emulator_try("status"), 20, "the emulator")

    def emulator_up(self):
        # Jobs of all users ask it.
        self.spawn(["bash", "-c", "umask 0; exec \"$@\"", "-",
                    "ocs-emulator", "--fabric", self.yaml, "--delay", str(self.delay_ms),
                    "--state", self.path("switches"), "--log", self.path("emulator.log"),
                    "--control", "unix:" + self.path("emulator.sock")], self.path("emulator.err"))

    def emulator_try(self, *words):
        """Its answer, or "" (it may be dead)."""
        return self.run(["timeout", "10", "ocs-emulator", "--control",
                         "unix:" + self.path("emulator.sock")] + list(words), check=False).stdout

    def ocsd_up(self):
        self.spawn(["ocsd", "--foreground", "--fabric", self.yaml], self.path("ocsd.log"))

    def slurmctld_up(self):
        self.spawn(["slurmctld", "-D"], self.path("slurmctld.err"))

    def signal(self, name, signum):
        self.run(["pkill", "-%d" % signum, "-x", name[:15]], check=False)

    def ask(self, *words, user=None):
        """Started, not waited for: whom it asks may be dead."""
        return self.spawn(["timeout", "30"] + list(words), self.path("asked.log"), user=user)


class Weather:
    """Every fault: a method that makes it and returns how it is mended (or None)."""

    def __init__(self, cluster, rng):
        self.c, self.rng = cluster, rng
        self.hands = set()      # patches that only a hand makes
        self.names = ["ocs-%s-%d-%d" % (dim, a, b) for dim in "xyz" for a in (0, 1) for b in (0, 1)]
        self.count = collections.Counter()

    def switch(self):
        return self.rng.choice(self.names)

    def fault(self, *words):
        name = self.switch()
        self.c.emulator_try("fault", name, *words)
        return lambda: self.c.emulator_try("fault", name, "none")

    def switch_silent(self):
        return self.fault("silent")

    def switch_denies(self):
        return self.fault("deny")

    def switch_partial(self):
        return self.fault("partial")

    def switch_loses_answers(self):
        return self.fault("lost")

    def switch_slow(self):
        return self.fault("slow", "1500")

    def switch_late(self):
        return self.fault("late", "3000")

    def switch_unreachable(self):
        return self.fault("refuse")

    def switch_refuses_login(self):
        return self.fault("login")

    def connections_cut(self):
        for name in self.rng.sample(self.names, 4):
            self.c.emulator_try("fault", name, "drop", "count", "2")

    def switch_reboots(self):
        self.c.emulator_try("reboot", self.switch(), self.rng.choice(("dark", "restore")),
                            str(self.rng.randrange(3000)))

    def port_wrong(self):
        name, port = self.switch(), str(self.rng.randint(1, 2 * self.c.cubes))
        self.c.emulator_try("port", name, port, self.rng.choice(("refuse", "fail")))
        return lambda: self.c.emulator_try("port", name, port, "good")

    def hand_makes(self):
        """A + port joined to a + port: what no job ever has."""
        name, size = self.switch(), self.c.switch_size()
        first, second = (2 * self.rng.randrange(self.c.cubes) + 1 for _ in range(2))
        self.hands.add((name, first, size + second))
        self.c.emulator_try("patch", name, str(first), str(size + second),
                            *self.rng.choice(((), ("quietly",))))
        return lambda: self.hand_undoes(name, first, size + second)

    def hand_undoes(self, name, first, second):
        if [first, second] in json.loads(self.c.emulator_try("table", name) or "{}").get(name, ()):
            self.c.emulator_try("unpatch", name, str(first))

    def hand_cuts(self):
        table = storm_judge.read_table(self.c.emulator_try("table") or "{}")
        for name, first, _ in self.rng.sample(sorted(table), min(2, len(table))):
            self.c.emulator_try("unpatch", name, str(first),
                                *self.rng.choice(((), ("quietly",))))

    def emulator_killed(self):
        self.c.signal("ocs-emulator", signal.SIGKILL)
        return self.c.emulator_up

    def ocsd_killed(self):
        self.c.signal("ocsd", signal.SIGKILL)
        return self.c.ocsd_up

    def ocsd_stopped(self):
        self.c.signal("ocsd", signal.SIGSTOP)
        return lambda: self.c.signal("ocsd", signal.SIGCONT)

    def slurmctld_killed(self):
        self.c.signal("slurmctld", signal.SIGKILL)
        return self.c.slurmctld_up

    def slurmctld_stopped(self):
        self.c.signal("slurmctld", signal.SIGSTOP)
        return lambda: self.c.signal("slurmctld", signal.SIGCONT)

    def slurmds_killed(self):
        names = self.rng.sample(self.c.nodes, 2)
        for name in names:
            self.c.stop_slurmd(name)
        return lambda: [self.c.start_slurmd(name) for name in names]

    def node_down(self):
        name = self.rng.choice(self.c.nodes)
        self.c.ask("scontrol", "update", "NodeName=" + name, "State=DOWN", "Reason=storm")
        return lambda: self.c.ask("scontrol", "update", "NodeName=" + name, "State=RESUME")

    def node_drained(self):
        name = self.rng.choice(self.c.nodes)
        self.c.ask("scontrol", "update", "NodeName=" + name, "State=DRAIN", "Reason=storm")
        return lambda: self.c.ask("scontrol", "update", "NodeName=" + name, "State=RESUME")

    def ocs_drained(self):
        kind, name = self.rng.choice((("switch", self.switch()), ("cube", "c1"),
                                      ("port", self.switch() + ":%d" % self.rng.randint(1, 8))))
        site = ("--fabric", self.c.yaml)
        self.c.ask("ocsctl", "drain", kind, name, "--reason", "storm", *site)
        return lambda: self.c.ask("ocsctl", "resume", kind, name, *site)

    def disk_full(self):
        fill = self.c.path("ocsd", "fill")
        self.c.run("dd if=/dev/zero of=%s bs=64k 2>/dev/null" % fill, check=False)
        return lambda: self.c.run(["rm", "-f", fill], check=False)

    def reconfigured(self):
        self.c.ask("scontrol", "reconfigure")

    def scancel_storm(self):
        self.c.ask("bash", "-c", "squeue -h -o %A | sort -u | shuf -n 3 | xargs -r -n 1 scancel")

    def requeued(self):
        self.c.ask("bash", "-c", "squeue -h -t R -o %A | shuf -n 1 | xargs -r scontrol requeue")

    def odd_user(self):
        """Whatever belongs to others, and a flood besides."""
        self.c.ask("bash", "-c", """for job in $(squeue -h -t R -o %%A); do
            ocsctl release $job --fabric %(yaml)s; ocsctl apply $job --node n0 --fabric %(yaml)s
            scancel $job
            scontrol update JobId=$job Comment=mine; scontrol requeue $job; done
            ocsctl drain switch ocs-x-0-0 --reason mine --fabric %(yaml)s
            ocsctl reconcile --fabric %(yaml)s; scontrol reconfigure""" % {"yaml": self.c.yaml},
                   user="daemon")
        self.c.ask("python3", "-c", FLOOD % self.c.path("ocsd.sock"), user="daemon")

    def kinds(self):
        return [name for name in vars(Weather) if not name.startswith("_") and
                name not in ("switch", "fault", "hand_undoes", "kinds", "strike")]

    def strike(self):
        """A fault that is not there yet; (its kind, how it is mended)."""
        kind = self.rng.choice(self.kinds())
        self.count[kind] += 1
        return kind, getattr(self, kind)()


class Storm:
    def __init__(self, cluster, rng):
        self.c, self.rng = cluster, rng
        self.weather = Weather(cluster, rng)
        self.mending = []       # (when, kind, how)
        self.over = threading.Event()
        self.submitted = 0
        self.said = open(cluster.path("storm.log"), "w")

    def say(self, text):
        self.said.write("%.3f %s\n" % (time.time(), text))
        self.said.flush()

    def poll(self):
        """What slurmctld says of its jobs, again and again."""
        with open(self.c.path("polls"), "w") as out:
            while not self.over.is_set():
                asked = time.time()
                done = self.c.run(["timeout", "5", "squeue", "-h", "-O",
                                   "JobID:12,StateCompact:6,RestartCnt:8"], check=False)
                if done.returncode == 0:
                    rows = [line.split() for line in done.stdout.splitlines()]
                    out.write(json.dumps({"t": asked, "rows": rows}) + "\n")
                    out.flush()
                self.over.wait(0.7)

    def submit(self):
        self.submitted += 1
        path = self.c.path("runs", "script.%d" % self.submitted)
        with open(path, "w") as handle:
            handle.write(SCRIPT.format(runs=self.c.path("runs"), emulator=self.c.path("emulator.sock"),
                                       seconds=self.rng.randint(3, 20), step=self.rng.randint(0, 1)))
        words = ["--shape=" + self.rng.choice(SHAPES)]
        words += self.rng.choice(([], [], [], ["--no-rotate"], ["--conn-type=mesh"], ["--no-requeue"]))
        self.c.ask("sbatch", "-o", "/dev/null", *words, path, user=self.rng.choice((None, "nobody")))

    def queue(self):
        """How many jobs the last poll showed."""
        last = storm_judge.lines(self.c.path("polls"))[-1:]
        return len(json.loads(last[0])["rows"]) if last else 0

    def mend_due(self, now):
        for entry in [entry for entry in self.mending if entry[0] <= now]:
            self.mending.remove(entry)
            self.say("mend " + entry[1])
            entry[2]()

    def rage(self, minutes):
        end = time.monotonic() + 60 * minutes
        submit_at = strike_at = 0.0
        while time.monotonic() < end:
            now = time.monotonic()
            self.mend_due(now)
            if now >= submit_at:
                if self.queue() < 12:
                    self.submit()
                submit_at = now + self.rng.uniform(0.5, 2)
            # One of each kind at a time, and calm enough between for jobs to start.
            if now >= strike_at and len(self.mending) < 3:
                before = self.rng.getstate()
                kind = self.rng.choice(self.weather.kinds())
                self.rng.setstate(before)
                if kind not in {entry[1] for entry in self.mending}:
                    kind, mend = self.weather.strike()
                    self.say("strike " + kind)
                    if mend:
                        self.mending.append((now + self.rng.uniform(1, 8), kind, mend))
                else:
                    self.rng.random()
                strike_at = now + self.rng.uniform(2, 8)
            time.sleep(0.1)

    # -- afterwards --------------------------------------------------------------

    def raise_the_dead(self):
        for name, up in (("ocs-emulator", self.c.emulator_up), ("ocsd", self.c.ocsd_up),
                         ("slurmctld", self.c.slurmctld_up)):
            self.c.signal(name, signal.SIGCONT)
            if not self.c.alive(name):
                up()
        running = self.c.run(["pgrep", "-a", "-x", "slurmd"], check=False).stdout
        for name in self.c.nodes:
            if " -N %s " % name not in running:
                self.c.start_slurmd(name)

    def mend_all(self):
        self.mend_due(float("inf"))
        self.raise_the_dead()
        self.c.until(lambda: self.c.emulator_try("status"), 30, "the emulator to be back")
        for name in self.weather.names:
            self.c.emulator_try("fault", name, "none")
            for port in range(1, 2 * self.c.cubes + 1):
                self.c.emulator_try("port", name, str(port), "good")
                self.c.emulator_try("port", name, str(port + self.c.switch_size()), "good")
        self.c.wait_for_slurmctld()

    def resume_all(self):
        """What the storm or what it broke took out of service."""
        site = ["--fabric", self.c.yaml]
        shown = self.c.run(["ocsctl", "show", "fabric", "--json"] + site, check=False).stdout
        for drain in (json.loads(shown).get("drains", []) if shown else []):
            self.c.run(["timeout", "20", "ocsctl", "resume", drain["kind"], drain["name"]] + site,
                       check=False)
        for name in self.c.nodes:
            state = self.c.out(["sinfo", "-h", "-n", name, "-o", "%T"]).split()
            if state and not state[0].startswith(("idle", "alloc", "mix", "comp")):
                self.c.run(["scontrol", "update", "NodeName=" + name, "State=RESUME"], check=False)

    def dark(self):
        """No circuit but those that a hand made, which go now."""
        table = storm_judge.read_table(self.c.emulator_try("table") or "{\"?\":[[0,0]]}")
        for name, first, second in table & self.weather.hands:
            self.weather.hand_undoes(name, first, second)
        return not table

    def calm(self):
        self.mend_all()

        def empty():
            self.raise_the_dead()
            self.c.run("squeue -h -o %A | sort -u | xargs -r scancel", check=False)
            return not self.c.run(["squeue", "-h"], check=False).stdout.strip()
        self.c.until(empty, 120, lambda: "the queue to be empty\n" + self.c.out(["squeue"]))
        self.c.until(self.dark, 120, lambda: "dark switches: %s\n%s" % (
            self.c.emulator_try("table"), tail(self.c.path("ocsd.log"), 30)))

        def whole():
            self.resume_all()
            return {word for word in self.c.out(["sinfo", "-h", "-o", "%T"]).split()} == {"idle"}
        self.c.until(whole, 120, lambda: "idle nodes\n" + self.c.out(["sinfo", "-R"]))
        self.last_job()

    def last_job(self):
        """The machine works: a shape over all of it, from circuits to circuits gone."""
        done = self.c.run(["sbatch", "--parsable", "--shape=8x2x2", "-o", "/dev/null"],
                          stdin="#!/bin/bash\nsleep 300\n")
        job = int(done.stdout)

        def runs():
            self.resume_all()
            return self.c.run(["squeue", "-h", "-j", str(job), "-o", "%t %r"]).stdout.strip() == "R None"
        self.c.until(runs, 120, lambda: "a last job: %s\n%s" % (
            self.c.job(job), self.c.out(["ocsctl", "show", "fabric", "--fabric", self.c.yaml])))
        self.c.run(["scancel", str(job)])
        self.c.until(self.dark, 60, "the last circuits to go")

    def run(self, minutes):
        with open(self.c.path("storm.json"), "w") as handle:
            json.dump({"size": self.c.switch_size()}, handle)
        poller = threading.Thread(target=self.poll)
        poller.start()
        try:
            self.rage(minutes)
            self.calm()
        finally:
            self.over.set()
            poller.join()
            with open(self.c.path("final.table"), "w") as handle:
                handle.write(self.c.emulator_try("table") or "{}")


def verdict(storm, trouble, seed):
    record = storm_judge.read(storm.c.dir)
    faults, count = storm_judge.judge(record)
    blind = storm_judge.blind_spots(record) if not faults and storm_judge.long_run(record) else []
    for what in sorted(count):
        print("%7d %s" % (count[what], what))
    print("%7d jobs submitted; faults: %s" % (storm.submitted, ", ".join(
        "%s %d" % item for item in sorted(storm.weather.count.items()))))
    for fault in faults[:30] + ([trouble] if trouble else []) + ["not seen: " + b for b in blind]:
        print(fault)
    good = not (faults or trouble or blind) and count["runs with circuits"] > 0
    print("storm of seed %d: %s; %d runs, %d faults of %d kinds, %d violations%s" % (
        seed, "survived" if good else "NOT SURVIVED", count["runs"],
        sum(storm.weather.count.values()), len(storm.weather.count), len(faults),
        ", not calm again" if trouble else ""))
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    parser.add_argument("--self-test", action="store_true", help="only: does the judge see faults?")
    options = parser.parse_args()
    if options.self_test:
        return storm_judge.self_test()
    if os.geteuid() or not os.environ.get("OCS_STAGE") or not os.environ.get("OCS_SLURM"):
        parser.error("needs root, and OCS_STAGE and OCS_SLURM set to the installed trees")
    cluster = Stormy(tempfile.mkdtemp(prefix="ocs-storm-"), os.environ["OCS_STAGE"],
                     os.environ["OCS_SLURM"], cubes=4, edge=2, tile=(1, 1, 2),
                     config={"SlurmdTimeout": "30", "MaxJobCount": "1000", "MinJobAge": "60"})
    os.chmod(cluster.dir, 0o755)
    try:
        cluster.start()
        storm, trouble = Storm(cluster, random.Random(options.seed)), None
        try:
            storm.run(options.minutes)
        except ClusterError as error:
            trouble = str(error)
        rc = verdict(storm, trouble, options.seed)
    finally:
        cluster.stop()
        if options.keep:
            print("left in " + cluster.dir, file=sys.stderr)
        else:
            shutil.rmtree(cluster.dir, ignore_errors=True)
    return rc


if __name__ == "__main__":
    sys.exit(main())
