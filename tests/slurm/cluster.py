# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A throwaway Slurm cluster with emulated switches, in namespaces of its own.

Everything runs in private mount, network, process and host-name namespaces, so
that several clusters fit on one machine and nothing survives the end: when the
first process of the namespace dies, all others do.
"""

import ctypes
import json
import os
import secrets
import signal
import subprocess
import time

from description import Description

# Process 1 of the namespace: sets the stage, then reaps orphans for ever.
INIT = r"""
import ctypes, os, signal, socket, subprocess, sys, time
directory = sys.argv[1]
hosts = [["mount", "--bind", directory + "/hosts", "/etc/hosts"]]
if not os.path.exists("/etc/hosts"):            # nothing to mount on
    etc = directory + "/etc-with-hosts"
    hosts = [["cp", "-a", "/etc", etc], ["cp", directory + "/hosts", etc + "/hosts"],
             ["mount", "--bind", etc, "/etc"]]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # die with the process that made us
socket.sethostname("head")
for command in (["mount", "--make-rprivate", "/"],
                ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
                *hosts,
                ["ip", "link", "set", "lo", "up"],
                # names resolve only where an address besides 127.0.0.1 exists
                ["ip", "address", "add", "127.0.0.2/8", "dev", "lo"]):
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit("%s: %s" % (" ".join(command), error))
os.makedirs("/run/munge", mode=0o755)
open(directory + "/init.ready", "w").close()
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(0.05)
"""


class ClusterError(Exception):
    pass


def seconds(text):
    """A time as Slurm writes it, in seconds since 1970."""
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def tail(path, lines=15):
    try:
        with open(path, errors="replace") as handle:
            return "".join(handle.readlines()[-lines:])
    except OSError:
        return ""


class Cluster(Description):
    """The same, running."""

    def __init__(self, directory, stage, slurm, **options):
        super().__init__(directory, stage, slurm, **options)
        self.holder = None
        self.init_pid = None
        self.spawned = []

    def job_dirs(self, node):
        return set(self.out(["ls", os.path.dirname(self.job_dir(node, 0))]).split())

    def leave_job_dirs(self, node, epochs):
        """{name: epoch}: what jobs leave there whose epilog never comes."""
        for name, epoch in epochs.items():
            self.run("mkdir -p {0} && echo {1} >{0}/epoch && touch {0}/topo.xml".format(
                self.job_dir(node, name), epoch))

    # -- processes -----------------------------------------------------------

    def environment(self, extra=None):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("SLURM_", "SBATCH_", "SALLOC_", "OCS_", "NCCL_"))}
        env["PATH"] = "%s/bin:%s/sbin:%s/bin:%s/sbin:/usr/sbin:/usr/bin:/sbin:/bin" % (
            self.stage, self.stage, self.slurm, self.slurm)
        env["SLURM_CONF"] = self.path("etc", "slurm.conf")
        env.update(extra or {})
        return env

    def enter(self, command, user=None):
        line = ["nsenter", "-t", str(self.init_pid), "-m", "-n", "-p", "-u", "-r", "--wd=/tmp",
                "--"]
        if user:
            line += ["setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups"]
        return line + command

    def run(self, command, check=True, timeout=90, env=None, user=None, stdin=None):
        """Runs COMMAND (a list, or a shell line) inside; the CompletedProcess."""
        if isinstance(command, str):
            command = ["bash", "-c", command]
        give = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run(
            self.enter(command, user), env=self.environment(env), timeout=timeout,
            cwd="/tmp", text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **give)
        if check and done.returncode:
            raise ClusterError("%s: exit %d\n%s%s" % (
                " ".join(command), done.returncode, done.stdout, done.stderr))
        return done

    def out(self, command, **options):
        return self.run(command, **options).stdout

    def spawn(self, command, log, env=None, user=None):
        with open(log, "a") as handle:
            self.spawned.append(subprocess.Popen(
                self.enter(command, user), env=self.environment(env), cwd="/tmp",
                stdin=subprocess.DEVNULL, stdout=handle, stderr=subprocess.STDOUT, start_new_session=True))
        return self.spawned[-1]

    def resume(self):
        """After SIGCONT to a process that was stopped: the nsenter that waits for it has stopped itself with
        it, and would never take note of its end."""
        for process in self.spawned:
            process.send_signal(signal.SIGCONT)

    def alive(self, name):
        return self.run(["pgrep", "-x", name[:15]], check=False).returncode == 0

    def kill(self, name, signum=signal.SIGKILL):
        self.run(["pkill", "-%d" % signum, "-x", name[:15]], check=False)
        self.until(lambda: not self.alive(name), 20, "%s to die" % name)

    def until(self, condition, seconds, what):
        """Polls CONDITION; its first true value, or an error that names WHAT.  On two busy cores all takes its
        time: no limit is under a minute."""
        seconds = max(seconds, 60)
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise ClusterError("waited %g s in vain for %s" % (
                    seconds, what() if callable(what) else what))
            time.sleep(0.1)

    def start_namespace(self):
        ready = self.path("init.ready")
        if os.path.exists(ready):
            os.unlink(ready)
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "--pid", "--uts", "--fork", "--kill-child",
             "--mount-proc", "/usr/bin/python3", "-c", INIT, self.dir],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
            # However this process ends, the namespace ends with it.
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
        end = time.monotonic() + 60
        while not os.path.exists(ready):
            if self.holder.poll() is not None or time.monotonic() > end:
                raise ClusterError("cannot set up private namespaces: %s" %
                                   self.holder.stderr.read().decode().strip())
            time.sleep(0.05)
        with open("/proc/%d/task/%d/children" % (self.holder.pid, self.holder.pid)) as handle:
            self.init_pid = int(handle.read().split()[0])

    def start_munge(self):
        key = self.path("etc", "munge.key")
        with open(key, "wb") as handle:
            handle.write(secrets.token_bytes(128))
        os.chmod(key, 0o600)
        self.run(["munged", "--key-file=" + key, "--socket=/run/munge/munge.socket.2",
                  "--pid-file=/run/munge/munged.pid", "--seed-file=/run/munge/munged.seed",
                  "--log-file=/run/munge/munged.log", "--force"])

    def start_emulator(self):
        keys = ["--host-key", self.path("etc", "host.key"),
                "--known-hosts", self.path("etc", "known_hosts")] \
            if self.netconf or "netconf" in (self.languages or ()) else []
        self.spawn(["ocs-emulator", "--fabric", self.yaml, "--delay", str(self.delay_ms),
                    "--log", self.path("emulator.log"),
                    "--control", "unix:" + self.path("emulator.sock")] + keys,
                   self.path("emulator.err"))
        self.until(lambda: os.path.exists(self.path("emulator.sock")), 10,
                   lambda: "the emulator:\n" + tail(self.path("emulator.err")))

    def start_ocsd(self):
        self.spawn(["ocsd", "--foreground", "--fabric", self.yaml, "--log-level", "debug"],
                   self.path("ocsd.log"))
        self.until(lambda: self.run(["ocsctl", "show", "fabric", "--fabric", self.yaml],
                                    check=False).returncode == 0,
                   15, lambda: "ocsd:\n" + tail(self.path("ocsd.log")))

    def start_slurmctld(self):
        self.spawn(["slurmctld", "-D"], self.path("slurmctld.err"))
        # A backup in charge may take half a minute to step down, without our plugins, too.
        self.until(lambda: "UP" in self.run(["scontrol", "ping"], check=False).stdout,
                   60, lambda: "slurmctld:\n" + tail(self.path("slurmctld.log")) +
                   tail(self.path("slurmctld.err")))

    def start_slurmd(self, name):
        conf = self.path("etc-slurmd", "slurm.conf")
        self.spawn(["slurmd", "-D", "-N", name, "-f", conf],
                   self.path("log", "slurmd.%s.err" % name),
                   env={"SLURM_CONF": conf, "SLURMD_NODENAME": name})

    def stop_slurmd(self, name, signum=signal.SIGKILL):
        """The job steps stay, as they do when a slurmd is restarted."""
        self.run(["pkill", "-%d" % signum, "-f", "slurmd -D -N %s -f" % name], check=False)
        if signum == signal.SIGCONT:
            self.resume()

    def start(self):
        self.configure()
        self.start_namespace()
        if self.remote == "munge":
            self.start_munge()
        elif self.remote == "key":
            with open(self.path("etc", "ocsd.key"), "wb") as handle:
                handle.write(secrets.token_bytes(1024))
            os.chmod(self.path("etc", "ocsd.key"), 0o600)
        if self.parts:
            self.start_emulator()
            self.start_ocsd()
        self.start_slurmctld()
        for name in self.nodes:
            self.start_slurmd(name)
        self.wait_idle()
        return self

    def wait_idle(self, seconds=60):
        def idle():
            rows = [line.split() for line in
                    self.out(["sinfo", "-h", "-N", "-o", "%N %T"]).splitlines()]
            return ({row[0] for row in rows} == set(self.nodes) and
                    {row[1] for row in rows} == {"idle"})
        self.until(idle, seconds, lambda: "all nodes to be idle\n%s\n%s" % (
            self.out(["sinfo"]), tail(self.path("slurmctld.log"), 30)))

    def stop(self):
        left = False
        if self.init_pid:
            try:
                os.kill(self.init_pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.spawned:        # each keeps what it waits for from going away
            process.kill()
        if self.holder:
            # It ends when the last process of the namespace has.
            try:
                self.holder.wait(60 if self.init_pid else 0)
            except subprocess.TimeoutExpired:
                left = self.init_pid
                self.holder.kill()
                self.holder.wait()
        for process in self.spawned:
            process.wait()
        self.holder = self.init_pid = None
        self.spawned = []
        if left:
            raise ClusterError("processes of the namespace of %d do not end" % left)

    # -- jobs ----------------------------------------------------------------

    def sbatch(self, *arguments, script="sleep 300", env=None, user=None):
        """Submits a script; the job's number."""
        done = self.run(["sbatch", "--parsable", "-o", self.path("out", "%j.out")] +
                        list(arguments), stdin="#!/bin/bash\n" + script + "\n",
                        env=env, user=user)
        return int(done.stdout.split(";")[0].strip())

    def reconfigure(self):
        """`scontrol reconfigure`; where the machine is too busy for an answer in time, once more.  A
        slurmctld that lost the answer of its slurmscriptd waits for ever: it has saved its state, and is
        started anew."""
        refused = []

        def done():
            asked = self.run(["timeout", "40", "scontrol", "reconfigure"], check=False)
            if asked.returncode not in (0, 124) and "timed out" not in asked.stderr:
                refused.append(asked.stderr)
            return refused or not asked.returncode
        try:
            self.until(done, 60, "slurmctld to read its configuration")
        except ClusterError:
            if "Attempting to reconfigure" not in tail(self.path("slurmctld.log"), 5):
                raise
            self.kill("slurmctld")
            self.start_slurmctld()
        if refused:
            raise ClusterError("scontrol reconfigure: %s" % refused[0])
        self.wait_for_slurmctld()

    def wait_for_slurmctld(self):
        """Until it answers.  Slurm 25.05 may never answer what comes while it reconfigures."""
        ping = ["timeout", "10", "scontrol", "ping"]
        self.until(lambda: "UP" in self.run(ping, check=False).stdout, 60, "slurmctld to be back")

    def saved(self, job=None):
        """Waits until slurmctld has written its state as it is now: it does so some seconds after a change
        (the comment of JOB, or of any), and whatever is younger is lost with kill -9 (such jobs are then
        killed as orphans).  A file that is newer than the change may have been packed before it."""
        job = job or int(self.out(["squeue", "-h", "-o", "%A"]).split()[0])
        mark = "saved-" + secrets.token_hex(8)
        self.run(["scontrol", "update", "JobId=%d" % job, "Comment=" + mark])

        def written():
            try:
                with open(self.path("state", "job_state"), "rb") as handle:
                    return mark.encode() in handle.read()
            except FileNotFoundError:       # for a moment, while a new one takes its place
                return False
        self.until(written, 60, "slurmctld to save its state")

    def refused(self, *arguments, env=None):
        """Submits something that must be refused; the message."""
        done = self.run(["sbatch", "-o", "/dev/null"] + list(arguments), check=False,
                        stdin="#!/bin/bash\nsleep 1\n", env=env)
        if done.returncode == 0:
            raise ClusterError("accepted: %s: %s" % (" ".join(arguments), done.stdout))
        return done.stderr

    def job(self, job):
        """The job as slurmctld shows it; {} if it is not known any more."""
        done = self.run(["scontrol", "-o", "show", "job", str(job)], check=False)
        fields, key = {}, None
        # A heterogeneous job has a line per part, an array one per task: the first.
        for word in done.stdout.strip().split("\n")[0].split(" "):
            name, equals, value = word.partition("=")
            if equals and name[:1].isupper() and name.replace("/", "").replace(":", "").isalnum():
                key, fields[name] = name, value
            elif key:
                fields[key] += " " + word
        return fields

    def state(self, job):
        return self.job(job).get("JobState", "GONE")

    def wait(self, job, states=("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"),
             seconds=60):
        states = (states,) if isinstance(states, str) else states
        def reached():
            state = self.state(job)
            return state if state in states else None
        return self.until(reached, seconds, lambda: "job %s to be %s\nit is %s\n%s\n%s" % (
            job, "/".join(states), self.job(job), tail(self.path("slurmctld.log")),
            tail(self.path("ocsd.log"))))

    def running(self, job, seconds=60):
        """Waits until the prologs are done and the job runs; its fields."""
        def started():
            # While prologs run, the state is R already and the reason is Prolog;
            # the number of a heterogeneous job gives a line for each component.
            lines = self.out(["squeue", "-h", "-j", str(job), "-o", "%t %r"]).splitlines()
            return bool(lines) and all(line == "R None" for line in lines)
        self.until(started, seconds, lambda: "job %s to run\nit is %s\n%s\n%s" % (
            job, self.job(job), tail(self.path("slurmctld.log")),
            tail(self.path("ocsd.log"))))
        return self.job(job)

    def output(self, job, seconds=60):
        self.wait(job, seconds=seconds)
        with open(self.path("out", "%s.out" % job)) as handle:
            return handle.read()

    def cancel_all(self, seconds=60):
        self.run("squeue -h -o %A | sort -u | xargs -r scancel", check=False)
        self.until(lambda: not self.out(["squeue", "-h"]).strip(), seconds,
                   lambda: "the queue to be empty\n" + self.out(["squeue"]))
        self.wait_idle(seconds)

    # -- the fabric ----------------------------------------------------------

    def ocsctl(self, *arguments):
        done = self.run(["ocsctl"] + list(arguments) + ["--json", "--fabric", self.yaml])
        return json.loads(done.stdout)

    def emulator(self, *words):
        return self.out(["ocs-emulator", "--control",
                         "unix:" + self.path("emulator.sock")] + list(words))

    def wait_for_switch(self, name, state="up", seconds=30):
        def reached():
            rows = self.ocsctl("show", "switch", name)["switches"]
            return rows[0]["state"] == state
        self.until(reached, seconds, "switch %s to be %s" % (name, state))

    def patches(self):
        """{(switch, ingress, egress)...} as the hardware has it now."""
        found = set()
        for switch, table in json.loads(self.emulator("table")).items():
            pairs = table.items() if isinstance(table, dict) else table
            found |= {(switch, int(pair[0]), int(pair[1])) for pair in pairs}
        return found

    def placement(self, job, node=None):
        """placement.json as a node of the job has it."""
        node = node or self.job(job)["BatchHost"]
        return json.loads(self.out(["cat", self.job_dir(node, job) + "/placement.json"]))

    def circuit_patches(self, placement):
        """The patches that realise the circuits of a placement (duplex ports)."""
        size, patches = self.switch_size(), set()
        for circuit in placement["circuits"]:
            switch = "ocs-%s-%d-%d" % (circuit["dim"], *circuit["position"])
            plus = 2 * int(circuit["from"][1:]) + 1
            minus = 2 * int(circuit["to"][1:]) + 2
            patches |= {(switch, plus, size + minus), (switch, minus, size + plus)}
        return patches

    def lit(self, job):
        """Whether all circuits of the job are there."""
        return self.circuit_patches(self.placement(job)) <= self.patches()

    def makes(self):
        """How often a switch has joined two ports so far; all rules of the hardware were kept."""
        done = self.run(["ocs-emulator", "--fabric", self.yaml, "--check-log",
                         self.path("emulator.log")], check=False)
        if done.returncode:
            raise ClusterError(done.stdout + done.stderr)
        return int(done.stderr.split(" makes")[0].split()[-1])
