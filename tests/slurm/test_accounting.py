# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What slurmdbd keeps of jobs with shapes, in a real MariaDB, and doc/accounting.md
followed to the letter."""

import os
import re
import time

import pytest

from cloud import Cloud
from cluster import tail
from conftest import living, places
from database import Database, lacking

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REAL, SERVERS, CUBES = 8, 4, 256
FULL = "--shape=8x16x16"        # all 256 cubes


class Accounted(Database, Cloud):
    """The first nodes have slurmds, the others never come; slurmdbd and a private MariaDB."""

    def slurm_conf(self):
        some = "NodeName=n[0-%d] NodeHostname=head NodeAddr=127.0.0.1 Port=[17000-%d] CPUs=8 RealMemory=1000\n" % (
            REAL - 1, 17000 + REAL - 1)
        some += "NodeName=d[0-%d] NodeHostname=head NodeAddr=127.0.0.1 Port=[%d-%d] CPUs=8 RealMemory=1000\n" % (
            SERVERS - 1, 17000 + REAL, 17000 + REAL + SERVERS - 1)
        return super().slurm_conf().replace("NodeName=n[0-", some + "NodeName=n[%d-" % REAL, 1)

    def start(self):
        super().start()
        real = ["n%d" % i for i in range(REAL)] + self.direct_nodes
        for name in real:
            self.start_slurmd(name)
        self.until(lambda: set(self.out(["sinfo", "-h", "-N", "-n", ",".join(real), "-o", "%T"]).split())
                   == {"idle"}, 60, lambda: "the slurmds:\n" + self.out(["sinfo"]))
        return self


def need_mariadb():
    why = lacking(places()[1])
    if why:
        pytest.skip(why)


@pytest.fixture(scope="module")
def site():
    need_mariadb()
    with living(Accounted, cubes=CUBES, edge=2, tile=(2, 2, 2), delay_ms=0, direct=SERVERS, degree=2,
                config={"AccountingStorageType": "accounting_storage/slurmdbd",
                        "AccountingStorageHost": "127.0.0.1", "AccountingStoreFlags": "job_extra",
                        "AuthInfo": "cred_expire=5",
                        "PreemptType": "preempt/qos", "PreemptMode": "REQUEUE,GANG",
                        "SchedulerParameters": "bf_interval=1,sched_interval=1"}) as cluster:
        yield cluster


def records(site, job, ended=1):
    """The rows of sacct for JOB once ENDED of them have: [[JobID, State, Extra, AdminComment]...]."""
    def read():
        text = site.out(["sacct", "-D", "-X", "-n", "-P", "-j", str(job), "-S", "now-1days",
                         "-o", "JobID,State,Extra,AdminComment,End"])
        rows = [line.split("|") for line in text.splitlines()]
        return [row[:4] for row in rows if row[4] != "Unknown" and "PENDING" not in row[1]]
    site.until(lambda: len(read()) >= ended, 60, lambda: "%d records of %s: %s\n%s" % (
        ended, job, read(), tail(site.path("slurmdbd.log"))))
    return read()


def test_completed_failed_and_cancelled_runs(site):
    """Shape, XPUs, cubes and circuits, whatever becomes of the job."""
    good = site.sbatch("--shape=4x2x2", "-w", "n[0-1]", script="true")
    bad = site.sbatch("--shape=2x2", "--extra=mine", "-w", "n2", script="exit 3", user="nobody")
    gone = site.sbatch("--shape=4x2x2", "-w", "n[4-5]")
    plain = site.sbatch("-N1", "-w", "n3", script="true")
    site.running(gone)
    site.run(["scancel", str(gone)])
    whole = "ocs: shape=4x2x2 xpus=16 idle=0 cubes=2 circuits=8"
    assert records(site, good) == [[str(good), "COMPLETED", "shape=4x2x2", whole]]
    assert records(site, bad) == [[str(bad), "FAILED", "mine shape=2x2",
                                   "ocs: shape=2x2 xpus=4 idle=4 cubes=1 circuits=0"]]
    row = records(site, gone)[0]
    assert row[1].startswith("CANCELLED") and row[3] == whole
    assert records(site, plain) == [[str(plain), "COMPLETED", "", ""]]


def test_requeued_run(site):
    """Each run has a record of its own, with what that run had."""
    job = site.sbatch("--requeue", "--shape=4x2x2", "-w", "n[0-1]",
                      script="[ -n \"$SLURM_RESTART_COUNT\" ] || sleep 300")
    site.running(job)
    site.run(["scontrol", "requeuehold", str(job)])
    site.until(lambda: site.state(job) == "PENDING", 60, "the job to wait")
    site.run(["scontrol", "update", "JobId=%d" % job, "ReqNodeList=n0", "Extra=shape=2x2x2"])
    site.run(["scontrol", "release", str(job)])
    rows = records(site, job, 2)
    assert [row[1] for row in rows] == ["REQUEUED", "COMPLETED"]
    assert [row[3] for row in rows] == ["ocs: shape=4x2x2 xpus=16 idle=0 cubes=2 circuits=8",
                                        "ocs: shape=2x2x2 xpus=8 idle=0 cubes=1 circuits=0"]


def test_run_that_a_switch_ended(site):
    """The record of the run says which switch it was, and what the job would have had."""
    site.emulator("fault", "ocs-x-0-0", "silent")
    try:
        job = site.sbatch("--requeue", "--shape=4x2x2", "-w", "n[0-1]", script="true")
        row = records(site, job)[0]
        assert row[1] == "REQUEUED"
        assert row[3].startswith("ocs: shape=4x2x2 xpus=16 idle=0 cubes=2 circuits=8; ocs failure: ")
        assert "ocs-x-0-0" in row[3] and "attempt 1 of" in row[3]
    finally:
        site.emulator("fault", "ocs-x-0-0", "none")
        site.wait_for_switch("ocs-x-0-0")
    assert records(site, job, 2)[1][1] == "COMPLETED"


def test_parts_and_elements(site):
    """A record for each task of an array and each part of a heterogeneous job."""
    array = site.sbatch("--shape=4x2x2", "--array=0-2", "-w", "n[0-1]", script="true")
    parts = site.sbatch("--shape=4x2x2", "-w", "n[2-3]", ":", "-N1", "-w", "n4", script="true")
    rows = records(site, array, 3)
    assert sorted(row[0] for row in rows) == ["%d_%d" % (array, i) for i in range(3)]
    assert {row[3] for row in rows} == {"ocs: shape=4x2x2 xpus=16 idle=0 cubes=2 circuits=8"}
    rows = records(site, parts, 2)
    assert sorted(row[0] for row in rows) == ["%d+%d" % (parts, i) for i in range(2)]
    assert sorted(bool(row[3]) for row in rows) == [False, True]


def test_direct_jobs(site):
    """srun and salloc without sbatch: what a batch job of that shape has."""
    tell = ["bash", "-c", "echo $SLURM_JOB_ID"]
    ran = site.out(["srun", "--shape=4x2x2", "-w", "n[0-1]"] + tell)
    held = site.out(["salloc", "-Q", "--shape=4x2x2", "-w", "n[2-3]"] + tell)
    for job in (int(ran.split()[0]), int(held.split()[0])):
        assert records(site, job) == [[str(job), "COMPLETED", "shape=4x2x2",
                                       "ocs: shape=4x2x2 xpus=16 idle=0 cubes=2 circuits=8"]]


def test_jobs_on_a_direct_fabric(site):
    """ocsd plans their circuits, counts them, and says so again when it was away."""
    job = site.sbatch("-p", "direct", "-N4", script="true")
    shaped = site.sbatch("-p", "direct", "--shape=2")
    assert records(site, job) == [[str(job), "COMPLETED", "", "ocs: nodes=4 circuits=4"]]
    site.running(shaped)
    wanted = "ocs: nodes=2 shape=2 circuits=%d" % site.ocsctl("show", "job", str(shaped))["jobs"][0]["circuits"]
    site.until(lambda: site.job(shaped)["AdminComment"].strip() == wanted, 20, lambda: site.job(shaped))
    site.run(["scontrol", "update", "JobId=%d" % shaped, "AdminComment="])
    site.kill("ocsd")
    site.start_ocsd()
    site.until(lambda: site.job(shaped).get("AdminComment", "").strip() == wanted, 20,
               lambda: site.job(shaped))
    site.run(["scancel", str(shaped)])
    assert records(site, shaped)[0][3] == wanted


def test_job_of_256_cubes(site):
    """The comment stays short, however large the job is."""
    job = site.sbatch(FULL)
    site.until(lambda: site.state(job) in ("CONFIGURING", "RUNNING"), 60, "all nodes to be allocated")
    site.run(["scancel", str(job)])
    row = records(site, job)[0]
    match = re.fullmatch(r"ocs: shape=8x16x16 xpus=2048 idle=0 cubes=256 circuits=(\d+)", row[3])
    assert match and int(match.group(1)) == 256 * 12, row
    assert len(row[3]) < 100


def qos(site, verb, name, **settings):
    """sacctmgr, and slurmctld has heard of it."""
    site.run(["sacctmgr", "-i", verb, "qos", name] + ["set"] * (verb == "modify") +
             ["%s=%s" % item for item in settings.items()])
    wanted = settings.get("preemptmode", "").upper()
    site.until(lambda: re.search(r"QOS=%s\(.*?PreemptMode=%s" % (name, wanted), site.out(
        ["scontrol", "show", "assoc_mgr", "flags=qos", "qos=" + name]), re.S | re.I), 20,
        "slurmctld to know QOS " + name)


def test_qos_that_suspends(site):
    """A job with circuits is neither submitted, nor started, nor suspended under it."""
    qos(site, "add", "slow", preemptmode="suspend")
    qos(site, "add", "mild", preemptmode="requeue")
    site.run(["sacctmgr", "-i", "add", "qos", "fast", "preempt=slow,mild"])
    qos(site, "modify", "fast", priority=10)
    told = site.refused("--shape=4x2x2", "-q", "slow")
    assert "QOS slow" in told and "SUSPEND" in told and "REQUEUE" in told, told
    assert "QOS slow" in site.refused("--shape=4x2x2", "-q", "mild,slow")
    site.run(["sacctmgr", "-i", "add", "account", "careful", "defaultqos=slow"])
    # From 25.11 on Slurm does not take the name nobody for a user's.
    site.run(["sacctmgr", "-i", "add", "user", "daemon", "account=careful", "qos=slow,mild",
              "defaultqos=slow"])
    site.until(lambda: "daemon" in site.out(["scontrol", "show", "assoc_mgr", "flags=assoc"]), 20,
               "the association")
    for account in ((), ("-A", "careful"), ("-A", "strange")):
        told = site.run(["sbatch", "--shape=4x2x2", "--wrap=true", "-o", "/dev/null", *account],
                        user="daemon", check=False).stderr
        assert "QOS slow" in told, (account, told)
    plain = site.sbatch("-q", "slow", "-N1", "-n1", "-w", "n7", script="true")
    victim = site.sbatch("--shape=4x2x2", "-q", "mild", "-w", "n[0-1]", "--requeue")
    held = site.sbatch("--shape=4x2x2", "-q", "mild", "-w", "n[2-3]", "-H")
    assert "QOS slow" in site.run(["scontrol", "update", "JobId=%d" % held, "QOS=slow"],
                                  check=False).stderr
    site.running(victim)
    # Too late for a refusal.
    qos(site, "modify", "mild", preemptmode="suspend")
    site.run(["scontrol", "release", str(held)])
    urgent = site.sbatch("-q", "fast", "-N2", "--exclusive", "-w", "n[0-1]")
    site.until(lambda: "QOS_mild_has_PreemptMode=SUSPEND" in site.job(held)["Reason"], 20,
               lambda: site.job(held))
    time.sleep(3)       # cycles of both schedulers
    assert [site.state(job) for job in (victim, held, urgent)] == ["RUNNING", "PENDING", "PENDING"]
    qos(site, "modify", "mild", preemptmode="requeue")
    site.running(urgent)
    site.running(held)
    assert site.job(victim)["Restarts"] == "1"
    site.wait(plain, "COMPLETED")
    site.run(["scancel", str(urgent), str(held), str(victim)])
    records(site, held)
    records(site, victim, 2)
    site.run(["sacctmgr", "-i", "delete", "user", "daemon"])


def queries():
    """The commands of doc/accounting.md."""
    with open(os.path.join(TOP, "doc", "accounting.md")) as handle:
        text = handle.read().split("## Queries")[1]
    return [re.sub("(?m)^    ", "", block) for block in re.findall(r"(?m)(?:^    .*\n)+", text)]


def test_queries_of_the_guide(site):
    """Each one runs as written, and the hours are those of the records."""
    found = [site.out(query) for query in queries()]
    assert len(found) == 5 and all(found)
    shapes, users, days, failed = found[1:]
    text = site.out(["sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-7days",
                     "-o", "User,State,ElapsedRaw,AdminComment"])
    rows = [re.fullmatch(r"(.*?)\|(.*?)\|(\d+)\|.*?ocs: shape=(\S+) xpus=(\d+) idle=(\d+) cubes=\d+ "
                         r"circuits=(\d+).*", line) for line in text.splitlines()]
    rows = [row.groups() for row in rows if row]
    assert len(rows) >= 8
    hours = {}
    for _, _, seconds, shape, xpus, _, _ in rows:
        hours[shape] = hours.get(shape, 0) + int(seconds) * int(xpus) / 3600
    assert {line.split()[4]: float(line.split()[0]) for line in shapes.splitlines()} == \
        pytest.approx(hours, abs=1e-3)
    for line in users.splitlines():
        total, idle, lost, user = [line.split()[i] for i in (0, 2, 4, 6)]
        mine = [row for row in rows if row[0] == user]
        assert float(total) == pytest.approx(sum(int(r[2]) * int(r[4]) for r in mine) / 3600, abs=1e-3)
        assert float(idle) == pytest.approx(sum(int(r[2]) * int(r[5]) for r in mine) / 3600, abs=1e-3)
        assert float(lost) == pytest.approx(sum(int(r[2]) * int(r[4]) for r in mine
                                                if r[1] != "COMPLETED") / 3600, abs=1e-3)
    assert {line.split()[6] for line in users.splitlines()} == {"root", "nobody"}
    assert sum(int(line.split()[1]) for line in days.splitlines()) == \
        sum(int(count) for count in re.findall(r"ocs: .* circuits=(\d+)", text))
    assert "ocs: nodes=4 circuits=4" in text
    assert "ocs-x-0-0" in failed
