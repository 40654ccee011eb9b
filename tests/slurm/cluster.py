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
import shutil
import signal
import subprocess
import time

# Process 1 of the namespace: sets the stage, then reaps orphans for ever.
INIT = r"""
import ctypes, os, signal, socket, subprocess, sys, time
directory = sys.argv[1]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # die with the process that made us
socket.sethostname("head")
for command in (["mount", "--make-rprivate", "/"],
                ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
                ["mount", "--bind", directory + "/hosts", "/etc/hosts"],
                ["ip", "link", "set", "lo", "up"],
                # names resolve only where an address besides 127.0.0.1 exists
                ["ip", "address", "add", "127.0.0.2/8", "dev", "lo"]):
    subprocess.run(command, check=True)
os.makedirs("/run/munge", mode=0o755)
open(directory + "/init.ready", "w").close()
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(0.05)
"""

SWITCHES = """  - name: {name}
    {driver}
    address: "127.0.0.1:{{{port}+index}}"
    size: {size}
    ports: duplex
"""

# What a switch speaks: the keys that go with it.
LOGIN = "\n    credentials: {dir}/etc/ocs.cred"
LANGUAGES = {
    "tl1": "driver: tl1\n    dialect: polatis" + LOGIN,
    "calient": "driver: tl1\n    dialect: calient" + LOGIN,
    "glimmerglass": "driver: tl1\n    dialect: glimmerglass" + LOGIN,
    "scpi": "driver: scpi",
    "netconf": "driver: netconf\n    dialect: polatis\n    known_hosts: {dir}/etc/known_hosts" + LOGIN,
}


class ClusterError(Exception):
    pass


def tail(path, lines=15):
    try:
        with open(path, errors="replace") as handle:
            return "".join(handle.readlines()[-lines:])
    except OSError:
        return ""


class Cluster:
    """`cubes` cubes of edge^3 XPUs, `tile` XPUs a node, one emulated switch per
    dimension and face position; optionally direct, rail and plain servers."""

    def __init__(self, directory, stage, slurm, cubes=4, edge=4, tile=(2, 2, 1),
                 direct=0, degree=4, rails=0, plain=0, delay_ms=20, config=None,
                 parts=("select", "topology"), spank=(), remote=False, direct_yaml="",
                 more_yaml="", more_switches=(), netconf=False, languages=None,
                 partitions=(), node_words=None, more_files=None):
        self.dir = os.path.abspath(directory)
        self.stage = os.path.abspath(stage)
        self.slurm = os.path.abspath(slurm)
        self.cubes, self.edge, self.tile = cubes, edge, tile
        self.degree, self.delay_ms = degree, delay_ms
        self.config = config or {}
        self.parts = parts
        self.spank = spank
        self.direct_yaml = direct_yaml      # more keys of the direct fabric
        self.more_switches = more_switches  # (names, first TCP port, more keys)
        self.more_yaml = more_yaml          # more parts of ocs.yaml
        self.netconf = netconf      # the switches speak it instead of TL1
        self.languages = languages  # of the switches of x, y and z (names in LANGUAGES)
        self.partitions = partitions        # further ones: what follows PartitionName=
        self.node_words = node_words or {}  # what slurm.conf says of single nodes besides
        self.more_files = more_files or {}  # beside slurm.conf: name and text
        self.remote = remote        # "munge" or "key": how slurmctld and the nodes are known
        self.cube_nodes = edge ** 3 // (tile[0] * tile[1] * tile[2])
        self.torus_nodes = ["n%d" % i for i in range(cubes * self.cube_nodes)]
        self.direct_nodes = ["d%d" % i for i in range(direct)]
        self.rail_nodes = ["r%d" % i for i in range(rails)]
        self.plain_nodes = ["p%d" % i for i in range(plain)]
        self.nodes = (self.torus_nodes + self.direct_nodes + self.rail_nodes +
                      self.plain_nodes)
        self.holder = None
        self.init_pid = None

    # -- paths ---------------------------------------------------------------

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    @property
    def yaml(self):
        return self.path("etc", "ocs.yaml")

    def job_dir(self, node, job):
        return "/run/ocs/%s/%s" % (node, job)

    def job_dirs(self, node):
        return set(self.out(["ls", os.path.dirname(self.job_dir(node, 0))]).split())

    def leave_job_dirs(self, node, epochs):
        """{name: epoch}: what jobs leave there whose epilog never comes."""
        for name, epoch in epochs.items():
            self.run("mkdir -p {0} && echo {1} >{0}/epoch && touch {0}/topo.xml".format(
                self.job_dir(node, name), epoch))

    # -- configuration -------------------------------------------------------

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as handle:
            handle.write(text)
        os.chmod(path, mode)

    def switch_size(self):
        # A duplex port is one of 1..size; each cube needs two at every switch.
        return max(16, 2 * self.cubes)

    def switches(self, **values):
        language = values.pop("language", "netconf" if self.netconf else "tl1")
        driver = LANGUAGES[language].format(dir=self.dir)
        return SWITCHES.format(driver=driver, **values)

    def ocs_yaml(self):
        last = self.edge - 1
        text = """version: 1
ocsd:
  socket: unix:{dir}/ocsd.sock
  state: {dir}/ocsd
{tcp}{key}  admins: [root]
timeouts: {{switch: 2s, retry: 1s, poll: 5s, prolog: 2m, ocsd_down: 20s}}
switches:
""".format(dir=self.dir, tcp="  listen: 127.0.0.1:6820\n  address: 127.0.0.1:6820\n"
           if self.remote else "", key="  key: %s\n" % self.path("etc", "ocsd.key")
           if self.remote == "key" else "")
        if self.languages:
            for i, language in enumerate(self.languages):
                text += self.switches(name="ocs-%s-[0-%d]-[0-%d]" % ("xyz"[i], last, last),
                                      port=3100 + 100 * i, size=self.switch_size(),
                                      language=language)
        else:
            text += self.switches(name="ocs-[x,y,z]-[0-%d]-[0-%d]" % (last, last),
                                  port=3100, size=self.switch_size())
        if self.direct_nodes:
            text += self.switches(name="direct-[0-%d]" % (self.degree - 1), port=3500,
                                  size=max(16, len(self.direct_nodes)))
        if self.rail_nodes:
            text += self.switches(name="rail-[0-7]", port=3600,
                                  size=max(16, len(self.rail_nodes)))
        for names, port, keys in self.more_switches:
            text += self.switches(name=names, port=port, size=16) + keys
        text += """fabrics:
  - name: pod
    kind: torus
    partitions: [{parts}]
    cube: {e}x{e}x{e}
    tile: {t[0]}x{t[1]}x{t[2]}
    tpu_environment: true
    cubes:
""".format(e=self.edge, t=self.tile,
           parts=", ".join(["tpu"] + [words.split()[0] for words in self.partitions]))
        for cube in range(self.cubes):
            first = cube * self.cube_nodes
            text += "      - {name: c%d, nodes: \"n[%d-%d]\"}\n" % (
                cube, first, first + self.cube_nodes - 1)
        text += """    ports:
      switch: "ocs-{dim}-{a}-{b}"
      port: 2*cube+sign+1
"""
        if self.direct_nodes:
            text += """  - name: direct
    kind: direct
    partitions: [direct]
    nodes: d[0-%d]
    degree: %d
    directed: false
    ports: {switch: "direct-{interface}", port: server+1}
""" % (len(self.direct_nodes) - 1, self.degree) + self.direct_yaml
        if self.rail_nodes:
            text += """  - name: rails
    kind: rails
    partitions: [rails]
    nodes: r[0-%d]
    rails: 8
    ports: {switch: "rail-{interface}", port: server+1}
""" % (len(self.rail_nodes) - 1)
        return text + self.more_yaml

    def slurm_conf(self):
        settings = {
            "ClusterName": "ocs",
            "SlurmctldHost": "head(127.0.0.1)",
            "AuthType": "auth/slurm",
            "CredType": "cred/slurm",
            # A requeued job waits until the credentials of its last run expire.
            "AuthInfo": "cred_expire=10",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "PluginDir": "%s/lib/slurm:%s/lib/slurm" % (self.stage, self.slurm),
            "PlugStackConfig": self.path("etc", "plugstack.conf"),
            "StateSaveLocation": self.path("state"),
            "SlurmctldLogFile": self.path("slurmctld.log"),
            "SlurmctldPidFile": self.path("slurmctld.pid"),
            "SlurmdLogFile": self.path("log", "slurmd.%n.log"),
            "SlurmdPidFile": self.path("log", "slurmd.%n.pid"),
            "SlurmdSpoolDir": self.path("spool", "%n"),
            "SlurmdParameters": "config_overrides",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "MpiDefault": "none",
            "ReturnToService": "2",
            "PrologFlags": "Alloc,DeferBatch",
            "PrologEpilogTimeout": "180",
            "SelectTypeParameters": "CR_Core",
            "SchedulerParameters": "bf_interval=2,sched_interval=5",
            "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
            "SlurmdTimeout": "300",
            "KillWait": "2",
            "MinJobAge": "300",
            "InactiveLimit": "0",
            "MaxArraySize": "2000",
            "DebugFlags": "NO_CONF_HASH",
            "SlurmctldDebug": "verbose",
            "SlurmdDebug": "info",
        }
        if "select" in self.parts:
            settings["SelectType"] = "select/cons_tres_ocs"
        if "topology" in self.parts:
            settings["TopologyPlugin"] = "topology/ocs"
        if self.parts:
            settings["JobSubmitPlugins"] = "ocs"
            settings["CliFilterPlugins"] = "ocs"
        settings.update({name: value.replace("{stage}", self.stage)
                         for name, value in self.config.items()})
        text = "".join("%s=%s\n" % item for item in settings.items() if item[1])
        cpus = max(4, self.tile[0] * self.tile[1] * self.tile[2])
        for number, name in enumerate(self.nodes):
            text += ("NodeName=%s NodeHostname=head NodeAddr=127.0.0.1 Port=%d CPUs=%d "
                     "RealMemory=1000 %s\n" % (name, 17000 + number, cpus,
                                               self.node_words.get(name, "")))
        default = " Default=YES"
        for part, nodes in (("tpu", self.torus_nodes), ("direct", self.direct_nodes),
                            ("rails", self.rail_nodes), ("plain", self.plain_nodes)):
            if nodes:
                text += "PartitionName=%s Nodes=%s[0-%d]%s\n" % (
                    part, nodes[0][0], len(nodes) - 1, default)
                default = ""
        text += "".join("PartitionName=%s\n" % words for words in self.partitions)
        return text

    def configure(self):
        for name in ("etc", "etc-slurmd", "state", "log", "spool", "ocsd", "out"):
            os.makedirs(self.path(name), exist_ok=True)
        for name in self.nodes:
            os.makedirs(self.path("spool", name), exist_ok=True)
        os.chmod(self.dir, 0o755)
        os.chmod(self.path("out"), 0o777)
        self.write("hosts", "127.0.0.1 localhost head\n::1 localhost\n")
        key = secrets.token_bytes(1024)
        conf = self.slurm_conf()
        for etc in ("etc", "etc-slurmd"):
            with open(self.path(etc, "slurm.key"), "wb") as handle:
                handle.write(key)
            os.chmod(self.path(etc, "slurm.key"), 0o600)
            self.write(etc + "/ocs.yaml", self.ocs_yaml())
            self.write(etc + "/cgroup.conf", "CgroupPlugin=disabled\n")
            self.write(etc + "/ocs-prolog.conf", "dir=/run/ocs/%n\n")
            for name, content in self.more_files.items():
                self.write(etc + "/" + name, content.replace("{dir}", self.dir))
        self.write("etc/slurm.conf", conf)
        # The slurmds of one host race for the SACK socket: they do without.
        self.write("etc-slurmd/slurm.conf", conf.replace("AuthInfo=", "AuthInfo=disable_sack,"))
        self.write("etc/plugstack.conf",
                   "required %s/lib/slurm/spank_ocs.so dir=/run/ocs/%%n conf=%s "
                   "helper=%s/libexec/slurm-ocs/ocs-node%s\n" % (
                       self.stage, self.yaml, self.stage,
                       "".join(" " + word for word in self.spank)) if self.parts else "")
        self.write("etc/ocs.cred", "user=admin\npassword=root\n", 0o600)

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
            return subprocess.Popen(self.enter(command, user), env=self.environment(env),
                                    cwd="/tmp", stdin=subprocess.DEVNULL, stdout=handle,
                                    stderr=subprocess.STDOUT, start_new_session=True)

    def alive(self, name):
        return self.run(["pgrep", "-x", name[:15]], check=False).returncode == 0

    def kill(self, name, signum=signal.SIGKILL):
        self.run(["pkill", "-%d" % signum, "-x", name[:15]], check=False)
        self.until(lambda: not self.alive(name), 20, "%s to die" % name)

    def until(self, condition, seconds, what):
        """Polls CONDITION; its first true value, or an error that names WHAT."""
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
        end = time.monotonic() + 15
        while not os.path.exists(ready):
            if self.holder.poll() is not None or time.monotonic() > end:
                raise ClusterError("private namespaces are not permitted here: %s" %
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
        if self.init_pid:
            try:
                os.kill(self.init_pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.holder:
            # It ends when the last process of the namespace has.
            try:
                self.holder.wait(30 if self.init_pid else 0)
            except subprocess.TimeoutExpired:
                self.holder.kill()
                self.holder.wait()
        self.holder = self.init_pid = None

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
        def done():
            asked = self.run(["timeout", "40", "scontrol", "reconfigure"], check=False)
            if asked.returncode not in (0, 124) and "timed out" not in asked.stderr:
                raise ClusterError("scontrol reconfigure: %s" % asked.stderr)
            return not asked.returncode
        try:
            self.until(done, 60, "slurmctld to read its configuration")
        except ClusterError:
            if "Attempting to reconfigure" not in tail(self.path("slurmctld.log"), 5):
                raise
            self.kill("slurmctld")
            self.start_slurmctld()
        # Slurm 25.05 may never answer what comes while it reconfigures.
        ping = ["timeout", "10", "scontrol", "ping"]
        self.until(lambda: "UP" in self.run(ping, check=False).stdout, 60, "slurmctld to be back")

    def saved(self, job=None):
        """Waits until slurmctld has written its state: it does so some seconds after a change (the comment
        of JOB, or of any), and whatever is younger is lost with kill -9 (such jobs are then killed as
        orphans)."""
        job = job or int(self.out(["squeue", "-h", "-o", "%A"]).split()[0])
        change = ["scontrol", "update", "JobId=%d" % job, "Comment=to be saved"]
        self.run(change)
        changed, state = time.time(), self.path("state", "job_state")

        def written():
            if os.path.exists(state) and os.path.getmtime(state) > changed:
                return True
            # Once more: the first one may have been written before scontrol ended.
            self.run(change, check=False)
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
