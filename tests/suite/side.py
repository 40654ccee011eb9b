# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""One of the two clusters that Slurm's own tests run on, and how a test ends there."""

import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "slurm"))
from cluster import Cluster, ClusterError  # noqa: E402
from database import Database  # noqa: E402

# How a test ended: "pass", "skip", "fail", "late"; why; after how many seconds; what it printed.
End = collections.namedtuple("End", "end why seconds text")

# Where a test does not end within the limit, its processes have this long to go.
GRACE = 10

CONF = """SlurmSourceDir={source}
SlurmBuildDir={source}
SlurmInstallDir={prefix}
SlurmConfigDir={etc}
"""
# Both sides; what real sites have and many tests are skipped without.
CONFIG = {
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageHost": "127.0.0.1",
    "AccountingStorageTRES": "gres/gpu",
    "GresTypes": "gpu",
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobAcctGatherFrequency": "task=5",
    "SelectTypeParameters": "CR_Core_Memory",
    "DefMemPerCPU": "100",
    # A requeued job waits so long; tests that look for it while it does take up to 20 s.
    "AuthInfo": "cred_expire=30",
}
PYTEST = "/usr/bin/python3 -m pytest -s -rA -v -p no:cacheprovider --disable-warnings --color=no " \
    "--%s-config --no-color --allow-slurmdbd-modify --basetemp=/tmp/work/pytest "
NODE = "Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 Gres=gpu:4"
# Any four devices do.
GPUS = "".join("Name=gpu File=/dev/%s\n" % name for name in ("full", "null", "random", "zero"))
NODES = 16
# Nodes of the shapes that run beside, so that the suite sees the same nodes on both.
BESIDE = "beside Nodes=n[8-15]"

# Many tests skip themselves unless SelectType is spelled "select/cons_tres": ours, which is that one
# with shapes on top, answers to its name in the tests' reading of the configuration.
EXPECT_READS = 'set output [run_command_output -fail -nolog "$command show config"]\n'
EXPECT_NAMES = EXPECT_READS + """
	regsub -all {select/cons_tres_ocs} $output {select/cons_tres} output
	regsub -all {topology/ocs} $output {topology/default} output
"""
PYTHON_NAMES = '''

_get_config_as_it_is = get_config


def get_config(*arguments, **options):
    names = {"select/cons_tres_ocs": "select/cons_tres", "topology/ocs": "topology/default"}
    return {
        name: names.get(value, value) if isinstance(value, str) else value
        for name, value in _get_config_as_it_is(*arguments, **options).items()
    }
'''


def rename_plugins(folder):
    """In a copy of the test suite."""
    path = os.path.join(folder, "expect", "globals")
    with open(path) as handle:
        text = handle.read()
    if text.count(EXPECT_READS) != 1:
        raise ClusterError("this release's testsuite/expect/globals reads the configuration in another way")
    with open(path, "w") as handle:
        handle.write(text.replace(EXPECT_READS, EXPECT_NAMES))
    path = os.path.join(folder, "python", "lib", "atf.py")
    if os.path.exists(path):
        with open(path, "a") as handle:
            handle.write(PYTHON_NAMES)


def without_numbers(text):
    """What a test says differs from run to run in numbers, and in words behind the first line."""
    return re.sub(r"\d+", "N", text.strip().split("\n")[0])[:200]


def why_expect(text):
    """The testprocs and subtests that failed, else what ended or skipped the test."""
    found = re.findall(r"^  (?:Testproc|Subtest) +\d+ (?:failed|skipped) +: (.*)$", text, re.M)
    if not found:
        said = re.findall(r"^\[[^]]*\] +(Fatal|Warning) +(.*?)(?: \(\S+:\d+.*)?$", text, re.M)
        found = [words for level, words in sorted(said, key=lambda pair: pair[0] == "Fatal")][-1:]
    return sorted({without_numbers(line) for line in found})


def why_python(text):
    """Each function that did not pass."""
    found = re.findall(r"^((?:FAILED|ERROR|SKIPPED|XFAIL|XPASS) .*)$", text, re.M)
    return sorted({without_numbers(line) for line in found})


class Suite(Database, Cluster):
    """The cluster of one side."""

    def __init__(self, ours, slurm, stage, beside):
        self.suite_nodes = ["n%d" % n for n in range(NODES // 2 if beside else NODES)]
        super().__init__(
            tempfile.mkdtemp(prefix="ocs-suite-", dir="/var/tmp"), stage, slurm, cubes=8, edge=2, tile=(2, 2, 1),
            parts=("select", "topology") if ours else (),
            config=dict(CONFIG, **({} if ours else {"SelectType": "select/cons_tres"})),
            partitions=["suite Nodes=n[0-%d] Default=YES" % (len(self.suite_nodes) - 1), BESIDE],
            node_words={"n%d" % n: NODE for n in range(NODES)}, more_files={"gres.conf": GPUS})

    def start_namespace(self):
        """With a /tmp and a home of its own: tests leave files there whose names are the same every time."""
        super().start_namespace()
        os.makedirs(self.path("home"), exist_ok=True)
        self.run("mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir /tmp/work")

    def tidy(self):
        """Whether the cluster is, within 30 s, as it was before the test."""
        self.run("squeue -h -o '%A %P' | awk '$2 != \"beside\" { print $1 }' | xargs -r scancel",
                    check=False)

        def clean():
            queue = self.run("squeue -h -o '%A %P' | grep -v ' beside$'", check=False).stdout
            states = self.run(["sinfo", "-h", "-N", "-p", "suite", "-o", "%N %T"], check=False).stdout
            return not queue and sorted(states.split("\n")[:-1]) == sorted(
                "%s idle" % node for node in self.suite_nodes)
        try:
            self.until(clean, 30, "the nodes")
            left = self.out("scontrol -o show reservation; scontrol -o show partition | grep -vE "
                               "'^PartitionName=(tpu|suite|beside) '; strigger --get --noheader; true")
            return not left.replace("No reservations in the system", "").strip()
        except (ClusterError, subprocess.TimeoutExpired):
            return False


class Configured(Suite):
    """For tests that write slurm.conf and start Slurm themselves (--auto-config): what they find is a slurm.conf
    with one node, munge, a database and, on our side, switches and ocsd."""

    password = ""               # the tests' backup of the database is made without one
    dbd_auth = "auth/munge"     # co-located slurmds that read one slurm.conf race for auth/slurm's socket

    def __init__(self, ours, slurm, stage, beside):
        super().__init__(ours, slurm, stage, beside)
        self.config = dict({} if ours else {"SelectType": "select/cons_tres"},
                           AuthType="auth/munge", CredType="cred/munge")
        self.partitions = ["primary Nodes=ALL Default=YES"]

    def ocs_yaml(self):
        return super().ocs_yaml().replace('nodes: "n[', 'nodes: "node[')

    def slurm_conf(self):
        lines = [line for line in super().slurm_conf().splitlines()
                 if not line.startswith(("NodeName=", "PartitionName="))]
        return "\n".join(lines + [
            "NodeName=node0 NodeHostname=head NodeAddr=127.0.0.1 Port=17000 CPUs=4 RealMemory=1000",
            "PartitionName=" + self.partitions[0], ""])

    def start(self):
        self.configure()
        self.first_conf = self.slurm_conf()
        self.start_namespace()
        self.start_munge()
        self.start_mariadb()
        if self.parts:
            self.start_emulator()
            self.start_ocsd()
        return self

    def tidy(self):
        with open(self.path("etc", "slurm.conf")) as handle:
            conf = handle.read()
        return conf.strip() == self.first_conf.strip() and not self.alive("slurmctld") and not self.alive("slurmd")


class Side:
    """A cluster, started anew whenever a test has left something behind."""

    def __init__(self, ours, slurm, source, stage, beside, limit):
        self.ours, self.source, self.limit = ours, source, limit
        self.beside = beside
        self.make = lambda kind: kind(ours, slurm, stage, beside)
        self.cluster = self.feeder = None
        self.feed = threading.Event()
        self.shaped = collections.Counter()     # how the jobs with a shape ended

    def start(self, kind):
        self.cluster = self.make(kind)
        self.cluster.start()
        folder = self.cluster.path("testsuite")
        shutil.copytree(os.path.join(self.source, "testsuite"), folder, symlinks=True)
        rename_plugins(folder)
        self.cluster.write("testsuite.conf", CONF.format(
            source=self.source, prefix=self.cluster.slurm, etc=self.cluster.path("etc")))
        if self.beside and kind is Suite:
            self.feed.set()
            self.feeder = threading.Thread(target=self.shapes, args=(self.cluster,), daemon=True)
            self.feeder.start()

    def stop(self):
        if self.feeder:
            self.feed.clear()
            self.feeder.join()
            self.feeder = None
            self.count_shapes()
        if self.cluster:
            self.cluster.stop()
            if not os.environ.get("OCS_KEEP"):
                shutil.rmtree(self.cluster.dir, ignore_errors=True)
            self.cluster = None

    def ready(self, kind):
        """With a cluster of this kind."""
        if type(self.cluster) is not kind:
            self.stop()
        for patience in (2, 1, 0):
            try:
                if not self.cluster:
                    self.start(kind)
                return self.cluster
            except (ClusterError, subprocess.TimeoutExpired):      # the machine may be busy
                self.stop()
                if not patience:
                    raise

    def test(self, name):
        """Runs test1.1, test_101_1.py or auto/test_101_1.py."""
        auto, python = name.startswith("auto/"), name.endswith(".py")
        cluster = self.ready(Configured if auto else Suite)
        command = "cd %s && exec timeout -k %d %d " % (
            cluster.path("testsuite", "python" if python else "expect"), GRACE, self.limit)
        if python:
            command += PYTEST % ("auto" if auto else "local") + "tests/" + os.path.basename(name)
        else:
            command += "expect ./" + name
        # A file, not a pipe, which whatever a test leaves behind keeps open.
        output = cluster.path("output")
        began = time.monotonic()
        try:
            done = cluster.run("(%s) >%s 2>&1" % (command, output), check=False, timeout=self.limit + 60, env={
                "SLURM_TESTSUITE_CONF": cluster.path("testsuite.conf"), "SLURM_LOCAL_GLOBALS_FILE": "/dev/null",
                "HOME": cluster.path("home"), "USER": "root", "LOGNAME": "root", "TERM": "dumb"})
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = 124
        with open(output, errors="replace") as handle:
            text = handle.read()
        ended = self.ended_python(code, text) if python else self.ended_expect(code, text)
        ended = End(*ended, time.monotonic() - began, text)
        if ended.end in ("fail", "late") or not cluster.tidy():
            self.stop()
        return ended

    @staticmethod
    def ended_expect(code, text):
        end = {0: "pass", 124: "late", 137: "late"}.get(code) or ("skip" if code > 127 else "fail")
        return end, why_expect(text) if end in ("skip", "fail") else []

    @staticmethod
    def ended_python(code, text):
        if code in (124, 137):
            return "late", []
        passed = re.search(r"^PASSED ", text, re.M)
        return ("fail" if code not in (0, 5) else "pass" if passed else "skip"), why_python(text)

    def count_shapes(self):
        try:
            self.shaped.update(self.cluster.out(
                "sacct -X -n -P -r beside -S now-1days -o State | sed 's/ by .*//'", check=False).split("\n")[:-1])
        except subprocess.TimeoutExpired:
            pass

    def shapes(self, cluster):
        """Jobs with a shape (on the plain side with as many nodes), one after the other, until told to stop."""
        while self.feed.is_set():
            try:
                cluster.run(["sbatch", "-p", "beside", "--shape=4x4x2" if self.ours else "-N8", "-o", "/dev/null",
                             "--wrap", "sleep 1"], check=False)
            except subprocess.TimeoutExpired:
                pass
            time.sleep(3)
