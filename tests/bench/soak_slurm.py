#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs on cubes, rails and a region under a real Slurm, several at once on the same switches, while faults come every few
seconds: soak_slurm.py [--jobs N] [--seed S] [--keep] | --self-test

Ranks, agents, controllers, ocsd, slurmds and slurmctld are killed, jobs cancelled and requeued while their circuits change,
switches are silent, deny, are slow, lose replies, drop connections and reboot, ports fail.  At every checkpoint the faults
end, the queue drains, and soak_slurm_judge.py looks for what is left; at the end it judges every job.  Needs root, OCS_STAGE
and OCS_SLURM (as the cluster tests do).  The last line is the verdict; the exit status is 0 if it is good."""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "slurm"), HERE]

import soak_slurm_judge as judge                # noqa: E402
from cluster import ClusterError, tail          # noqa: E402
from soak_cluster import SoakCluster            # noqa: E402

# How many of a kind are in the queue at once, and how often a kind is chosen.
KINDS = {"cubes": (6, 5), "rails": (4, 3), "region": (4, 2)}
SCRIPT = {
    "cubes": """cp $SLURM_OCS_DIR/placement.json {stem}.placement
timeout 60 ocs-emulator --control unix:{emulator} table >{stem}.table
sleep {seconds}; rc=0""",
    "rails": """srun -N{nodes} -n{nodes} --ntasks-per-node=1 -K /usr/bin/python3 {program} rails {serial} {runs} {turns}; rc=$?""",
    "region": """export OCS_MOE_LIBRARY={library}
srun -N{nodes} -n{nodes} --ntasks-per-node=1 -K /usr/bin/python3 {program} region {serial} {runs} {turns}; rc=$?""",
}
SWITCHES = ["ocs-%s-%d-%d" % (d, a, b) for d in "xyz" for a in (0, 1) for b in (0, 1)] + ["rail-0", "rail-1", "region-0"]
# How many seconds apart; a slurmctld takes about ten to be back
APART = {"slurmctld": 45, "ocsd": 5, "slurmd": 3}
TROUBLES = ["silent count 1", "drop count 2", "deny count 1", "partial count 1", "lost count 1", "duplicate count 2",
            "refuse count 2", "slow 300 count 3"]


class Faults:
    """Each method does one, notes whom it concerns, and returns how it is mended, or None: there was nobody to hurt."""

    def __init__(self, soak):
        self.soak, self.c, self.rng, self.last = soak, soak.c, soak.rng, {}

    def job_pick(self, *kinds):
        """A running job: (its number, its name)."""
        running = sorted((job, row["name"]) for job, row in self.soak.queue.items()
                         if row["state"] == "R" and row["kind"] in (kinds or KINDS))
        return self.rng.choice(running) if running else None

    def slurm_tell(self, kind, words, *kinds):
        found = self.job_pick(*kinds)
        if not found:
            return None
        self.soak.note(kind, jobs=[found[1]])
        self.soak.start(["timeout", "60", *words, str(found[0])])
        return ()

    def scancel(self):
        return self.slurm_tell("scancel", ["scancel"])

    def requeue(self):
        return self.slurm_tell("requeue", ["scontrol", "requeue"])

    def process_kill(self, kind, found, pattern):
        """One of those whose command line fits."""
        pids = self.c.run(["pgrep", "-f", pattern], check=False).stdout.split() if found else []
        if not pids:
            return None
        self.soak.note(kind, jobs=[found[1]])
        self.c.run(["kill", "-KILL", self.rng.choice(pids)], check=False)
        return ()

    def rank(self):
        found = self.job_pick("rails", "region")
        return self.process_kill("rank", found, "^/usr/bin/python3 .*soak_rank.py [a-z]* %s " % (found and found[1]))

    def agent(self):
        found = self.job_pick("rails")
        return self.process_kill("agent", found, "ocs-rails-agent --job %d " % (found[0] if found else 0))

    def rails_controller(self):
        found = self.job_pick("rails")
        return self.process_kill("rails_controller", found, "ocs-rails-controller --job %d " % (found[0] if found else 0))

    def moe_controller(self):
        found = self.job_pick("region")
        return self.process_kill("moe_controller", found, "ocs-moe-controller --region [^ ]*/%d/" % (found[0] if found else 0))

    def ocsd(self):
        self.soak.note("ocsd")
        self.c.kill("ocsd")
        return [lambda: self.c.spawn(["ocsd", "--foreground", "--fabric", self.c.yaml], self.c.path("ocsd.log"))]

    def slurmctld(self):
        self.soak.note("slurmctld", jobs=sorted(self.soak.unsaved()))
        self.c.kill("slurmctld")
        return [lambda: self.c.spawn(["slurmctld", "-D"], self.c.path("slurmctld.err"))]

    def slurmd(self):
        node = self.rng.choice(self.c.nodes)
        self.soak.note("slurmd", node=node)
        self.c.stop_slurmd(node)
        return [lambda: self.c.start_slurmd(node)]

    def switch(self):
        name = self.rng.choice(SWITCHES + ["rail-0", "rail-1", "region-0"] * 4)
        trouble = self.rng.choice(TROUBLES)
        self.soak.note("switch " + trouble.split()[0], switch=name)
        self.c.ask("fault %s %s" % (name, trouble))
        return [lambda: self.c.ask("fault %s none" % name)]

    def reboot(self):
        name, how = self.rng.choice(SWITCHES), self.rng.choice(("dark", "restore"))
        self.soak.note("reboot " + how, switch=name)
        self.c.ask("reboot %s %s %d" % (name, how, self.rng.randrange(50, 1500)))
        return ()

    def port(self):
        name, how = self.rng.choice(SWITCHES), self.rng.choice(("refuse", "fail"))
        port = self.rng.randint(1, 8)
        self.soak.note("port " + how, switch=name)
        self.c.ask("port %s %d %s" % (name, port, how))
        return [lambda: self.c.ask("port %s %d good" % (name, port))]

    def strike(self):
        """(its kind, how it is mended)"""
        kinds = ["scancel"] * 6 + ["requeue"] * 4 + ["rank"] * 4 + ["agent"] * 4 + ["rails_controller"] * 4 + \
            ["moe_controller"] * 4 + ["ocsd"] * 5 + ["slurmctld"] + ["slurmd"] * 3 + ["reboot"] * 3 + ["port"] * 3 + ["switch"] * 16
        kind = self.rng.choice(kinds)
        now = time.monotonic()
        if any(kind == mending[1] for mending in self.soak.mending) or now < self.last.get(kind, 0) + APART.get(kind, 0):
            return kind, None
        self.last[kind] = now
        return kind, getattr(self, kind)()


class Soak:
    def __init__(self, cluster, rng, jobs):
        self.c, self.rng, self.jobs = cluster, rng, jobs
        # UNSEEN have been submitted and were not in the queue yet; YOUNG of them only just now
        self.queue, self.young, self.unseen, self.mending, self.children = {}, {}, set(), [], []
        self.seen = {}      # when each was last in the queue
        self.serial, self.found, self.checkpoints, self.most = 0, [], 0, 0
        self.counts, self.sums = collections.Counter(), None
        self.log = open(cluster.path("faults"), "w", encoding="ascii")
        self.polls = open(cluster.path("polls"), "w", encoding="ascii")
        self.faults = Faults(self)
        self.bare = judge.hosts_read(cluster)

    def note(self, kind, **more):
        self.counts[kind] += 1
        self.log.write(json.dumps({"t": time.time(), "kind": kind, **more}) + "\n")
        self.log.flush()

    def unsaved(self):
        """The jobs that a slurmctld which is killed now may forget: it saves its state some seconds after a change."""
        return self.unseen | {name for name, when in self.seen.items() if time.monotonic() < when + 15}

    def start(self, words, text=None, user=None):
        """A command that nobody waits for."""
        child = subprocess.Popen(self.c.enter(words, user), env=self.c.environment(), cwd="/tmp", text=True,
                                 stdin=subprocess.PIPE if text else subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=open(self.c.path("asked.log"), "a", encoding="utf-8"))
        if text:
            child.stdin.write(text)
            child.stdin.close()
        self.children = [one for one in self.children if one.poll() is None] + [child]

    def submit(self, kind):
        self.serial += 1
        name, rng, user, words = "s%d" % self.serial, self.rng, None, []
        stem = self.c.path("runs", name) + ".${SLURM_RESTART_COUNT:-0}"
        values = {"stem": stem, "emulator": self.c.path("emulator.sock"), "seconds": rng.choice((0, 1, 2)), "serial": name,
                  "program": self.c.path("soak_rank.py"), "runs": self.c.path("runs"), "turns": rng.randint(2, 10), "nodes": 1,
                  "library": self.c.stage + "/libexec/slurm-ocs/libocsmoe.so"}
        if kind == "cubes":
            words = ["-p", "tpu", "--shape=" + rng.choice(("2x2x2", "4x2x2", "2x2x2", "2x4x2", "2x2x6"))]
        elif kind == "rails":
            user, values["nodes"] = "nobody", rng.choice((2, 4, 4))
            words = ["-p", "rails", "--shape=" + ("pp:2,dp:2,tp:2" if values["nodes"] == 4 else "dp:2,tp:2"),
                     "--ocs-phases=" + rng.choice(("on-demand", "provisioned"))]
        else:
            user, values["nodes"] = "nobody", rng.choice((2, 3, 4))
            words = ["-p", "moe", "--shape=ep:%d" % values["nodes"], "--ocs-moe"]
        text = "#!/bin/bash\n" + (SCRIPT[kind] + "\necho $rc >{stem}.rc\nexit $rc\n").format(**values)
        self.young[name] = time.monotonic()
        self.unseen.add(name)
        self.log.write(json.dumps({"t": time.time(), "submit": name, "of": kind, "nodes": values["nodes"]}) + "\n")
        # twice: slurmctld may be down
        self.start(["bash", "-c", "f=$(mktemp); cat >$f; for i in 1 2 3 4 5 6; do sbatch \"$@\" $f && break;"
                    " sleep 3; done; rm $f", "-", "--requeue", "-t", "5", "-J", name, "-o", self.c.path("out", name + ".out"),
                    "--open-mode=append", *words], text, user)

    def poll(self):
        done = self.c.run(["timeout", "20", "squeue", "-h", "-o", "%A %j %P %t %N %r"], check=False)
        if done.returncode:
            return False
        rows = [(line + " ").split(" ", 5) for line in done.stdout.splitlines()]
        kinds = {"tpu": "cubes", "rails": "rails", "moe": "region"}
        self.queue = {int(row[0]): {"name": row[1], "kind": kinds[row[2]], "state": row[3], "nodes": row[4],
                                    "reason": row[5].strip()} for row in rows}
        for row in self.queue.values():
            self.young.pop(row["name"], None)
            self.unseen.discard(row["name"])
            self.seen[row["name"]] = time.monotonic()
        self.young = {name: since for name, since in self.young.items() if time.monotonic() < since + 5}
        self.most = max(self.most, sum(row["state"] == "R" for row in self.queue.values()))
        lost, gone = self.c.lost(), {}
        for key, count in lost.items():
            if self.sums and count != self.sums[key]:
                gone["%s %d" % key] = count - self.sums[key]
        self.sums = lost
        self.polls.write(json.dumps({"t": time.time(), "lost": gone, "jobs": {
            row["name"]: [row["state"], row["nodes"]] for row in self.queue.values()}}) + "\n")
        return True

    def mend(self, now):
        for due in [mending for mending in self.mending if mending[0] <= now]:
            self.mending.remove(due)
            for how in due[2]:
                how()

    def nodes_resume(self):
        """What faults took out of service comes back, and is counted."""
        for line in self.c.run(["timeout", "20", "sinfo", "-h", "-R", "-o", "%E|%N"], check=False).stdout.splitlines():
            reason, node = line.rsplit("|", 1)
            self.counts["node out: " + reason[:60]] += 1
            self.c.run(["timeout", "20", "scontrol", "update", "NodeName=" + node, "State=RESUME"], check=False)
        held = [job for job, row in self.queue.items() if "held" in row["reason"].lower()]
        for job in held:
            self.counts["held: " + self.queue[job]["reason"][:60]] += 1
            self.c.run(["timeout", "20", "scontrol", "release", str(job)], check=False)

    def rage(self, upto):
        strike_at = resume_at = 0.0
        while self.serial < upto:
            now = time.monotonic()
            self.mend(now)
            if self.poll():
                waiting = collections.Counter(row["kind"] for row in self.queue.values())
                room = [kind for kind, (limit, weight) in KINDS.items() for _ in range(weight) if waiting[kind] < limit]
                for kind in self.rng.sample(room, min(3, len(room), upto - self.serial)) if len(self.young) < 6 else ():
                    self.submit(kind)
            if now > strike_at:
                kind, mended = self.faults.strike()
                if mended:
                    self.mending.append((now + self.rng.uniform(0.3, 3), kind, mended))
                strike_at = now + (self.rng.uniform(0.1, 1) if mended is not None else 0)
            if now > resume_at:
                self.nodes_resume()
                resume_at = now + 5
            time.sleep(0.1)

    def calm(self):
        """Faults end; the queue drains."""
        self.mend(float("inf"))
        for name in SWITCHES:
            self.c.ask("fault %s none" % name)
        self.c.wait_for_slurmctld()
        self.c.until(lambda: self.c.run(["ocsctl", "show", "fabric", "--fabric", self.c.yaml], check=False).returncode == 0,
                     60, "ocsd to be back")
        end = time.monotonic() + 300
        while time.monotonic() < end:
            for drain in self.c.ocsctl("show", "fabric").get("drains", []):
                self.counts["drain: %s" % drain.get("reason", "?")[:60]] += 1
                self.c.run(["ocsctl", "resume", drain["kind"], drain["name"], "--fabric", self.c.yaml], check=False)
            if self.poll() and not self.queue and not any(child.poll() is None for child in self.children):
                break
            self.nodes_resume()
            time.sleep(0.3)
        else:
            self.found.append("jobs do not end: %s" % self.queue)
            self.c.run("squeue -h -o %A | xargs -r scancel", check=False)

    def sweep(self):
        """A job over all nodes of each kind: everything works, and prologs remove what forgotten jobs left."""
        words = {"tpu": "--shape=2x2x8", "rails": "--shape=pp:4,dp:2,tp:2 --ocs-phases=on-demand", "moe": "--shape=ep:6 --ocs-moe"}
        jobs = [self.c.sbatch("-p", part, *more.split(), script="true") for part, more in words.items()]
        states, end = [], time.monotonic() + 300
        while time.monotonic() < end:
            states = [self.c.state(job) for job in jobs]
            if not set(states) & {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}:
                break
            # slurmctld may have drained a node only now
            self.poll()
            self.nodes_resume()
            time.sleep(0.3)
        if set(states) != {"COMPLETED"}:
            self.found.append("checkpoint %d: jobs over all nodes are %s" % (self.checkpoints + 1, states))
            self.c.run("squeue -h -o %A | xargs -r scancel", check=False)

    def checkpoint(self):
        self.calm()
        self.sweep()
        self.checkpoints += 1
        # what is young is not judged: nodes may still be told that a job is over
        end, left = time.monotonic() + 60, True
        while left and time.monotonic() < end:
            left = judge.leftovers(self.c, self.bare)
            time.sleep(0.5)
        self.found += ["checkpoint %d: %s" % (self.checkpoints, what) for what in left]
        with open(self.c.path("jobs"), "a", encoding="utf-8") as out:
            out.write(self.c.out(["scontrol", "-o", "show", "jobs"]))
        print("%d jobs, %d faults, %d at once; %s" % (self.serial, sum(
            count for kind, count in self.counts.items() if ":" not in kind), self.most, left or "nothing is left"), flush=True)

    def run(self, every):
        while self.serial < self.jobs:
            self.rage(min(self.jobs, self.serial + every))
            self.checkpoint()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100, help="jobs between two checkpoints [100]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    parser.add_argument("--self-test", action="store_true", help="only: does the judge see what is wrong?")
    options = parser.parse_args()
    if options.self_test:
        return judge.self_test()
    if os.geteuid() or not os.environ.get("OCS_STAGE") or not os.environ.get("OCS_SLURM"):
        parser.error("needs root, and OCS_STAGE and OCS_SLURM set to the installed trees")
    for name in ("OCS_STAGE", "OCS_SLURM"):
        if os.path.realpath(os.environ[name]).startswith("/tmp/"):
            parser.error("%s lies in /tmp, of which the cluster has its own, which is empty at first" % name)
    for number in (signal.SIGINT, signal.SIGTERM):      # in the background a shell lets it ignore SIGINT
        signal.signal(number, lambda *_: sys.exit(1))   # the cluster stops, too
    folder, begin = tempfile.mkdtemp(prefix="ocs-soak-", dir="/var/tmp"), time.monotonic()
    os.chmod(folder, 0o755)
    cluster, soak = SoakCluster(folder, os.environ["OCS_STAGE"], os.environ["OCS_SLURM"]), None
    try:
        cluster.start()
        soak = Soak(cluster, random.Random(options.seed), options.jobs)
        try:
            soak.run(options.every)
        except ClusterError as error:
            soak.found.append(str(error) + tail(cluster.path("slurmctld.log"), 5))
        soak.polls.flush()
        soak.log.flush()
        wrong, counts = judge.judge(judge.read(folder))
        for what, count in sorted((soak.counts + counts).items()):
            print("%7d %s" % (count, what))
        for what in soak.found + wrong:
            print("FAULT " + what)
        print("soak of seed %d: %s; %d jobs in %.0f s, %d checkpoints, %d violations" % (
            options.seed, "NOT SURVIVED" if soak.found + wrong else "survived", soak.serial, time.monotonic() - begin,
            soak.checkpoints, len(soak.found + wrong)))
        return 1 if soak.found + wrong else 0
    finally:
        cluster.stop()
        if options.keep:
            print("left in " + folder, file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
