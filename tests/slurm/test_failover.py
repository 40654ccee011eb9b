# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""slurmctld restarted, replaced, taken over from: running shapes keep their circuits, new
ones start, and one slurmctld at a time has ocsd."""

import shutil
import signal

import pytest

from cluster import tail

BACKUP = ("head(127.0.0.1)\nSlurmctldHost=other(127.0.0.2)")


@pytest.fixture(scope="module")
def twin(make_cluster):
    """A small pod with two slurmctlds over one StateSaveLocation.  The second has a host
    name, a configuration file and an ocs.yaml of its own."""
    cluster = make_cluster(edge=2, config={"SlurmctldHost": BACKUP, "SlurmctldTimeout": "4",
                                           "MinJobAge": "10"})
    cluster.write("hosts", "127.0.0.1 localhost head\n127.0.0.2 other\n::1 localhost\n")
    shutil.copytree(cluster.path("etc"), cluster.path("etc-other"))
    with open(cluster.path("etc", "slurm.conf")) as handle:
        conf = handle.read()
    conf = conf.replace("AuthInfo=", "AuthInfo=disable_sack,")
    for name in ("slurmctld.log", "slurmctld.pid"):
        conf = conf.replace(cluster.path(name), cluster.path("other-" + name))
    cluster.write("etc-other/slurm.conf", conf)
    # Commands need somebody to sign for them, whichever slurmctld lives.
    cluster.run("mkdir -p /run/slurm")
    cluster.spawn(["sackd", "-D", "-f", cluster.path("etc", "slurm.conf")],
                  cluster.path("sackd.log"))
    cluster.until(lambda: cluster.run(["test", "-S", "/run/slurm/sack.socket"],
                                      check=False).returncode == 0, 20,
                  lambda: "sackd\n" + tail(cluster.path("sackd.log")))
    start_other(cluster)
    return cluster


def start_other(cluster):
    conf = cluster.path("etc-other", "slurm.conf")
    cluster.spawn(["unshare", "--uts", "bash", "-c",
                   "hostname other; exec slurmctld -D -f " + conf],
                  cluster.path("other-slurmctld.err"), env={"SLURM_CONF": conf})
    cluster.until(lambda: up(cluster, "other"), 30,
                  lambda: "the backup\n" + tail(cluster.path("other-slurmctld.err")) +
                  tail(cluster.path("other-slurmctld.log")))


def start_head(cluster):
    """The primary comes back; a backup that is in charge gives way within half a minute."""
    since = len(log(cluster, "head"))
    cluster.spawn(["slurmctld", "-D"], cluster.path("slurmctld.err"))
    in_charge(cluster, "head", since, 120)


def up(cluster, host):
    """Whether the slurmctld of HOST answers."""
    for line in cluster.run(["scontrol", "ping"], check=False).stdout.splitlines():
        if " at %s is " % host in line:
            return line.rstrip().endswith("UP")
    return False


def pids(cluster, host):
    found = []
    for pid in cluster.run(["pgrep", "-x", "slurmctld"], check=False).stdout.split():
        # Empty for one that has just ended.
        command = cluster.out("tr '\\0' ' ' < /proc/%s/cmdline || true" % pid)
        if command and ("etc-other" in command) == (host == "other"):
            found.append(pid)
    return found


def end(cluster, host, signum):
    for pid in pids(cluster, host):
        cluster.run(["kill", "-%d" % signum, pid], check=False)


def log(cluster, host):
    with open(cluster.path("slurmctld.log" if host == "head" else "other-slurmctld.log"),
              errors="replace") as handle:
        return handle.read()


def in_charge(cluster, host, since=0, seconds=60):
    """Waits until HOST is the controller and has ocsd."""
    def now():
        text = log(cluster, host)[since:]
        return "Running as primary controller" in text and "connected to ocsd at" in text
    cluster.until(now, seconds, lambda: "%s to be in charge\n%s" % (
        host, log(cluster, host)[since:][-3000:]))


def nodes_of(cluster, job):
    return cluster.out(["scontrol", "show", "hostnames",
                        cluster.job(job)["NodeList"]]).split()


def agree(cluster, held, *jobs):
    """JOBS are all that ocsd knows, HELD is all that the switches have and ocsd says so."""
    def rows():
        return sorted((row["job"], row["state"]) for row in cluster.ocsctl("show", "job")["jobs"])
    cluster.until(lambda: rows() == [(job, "realised") for job in sorted(jobs)], 60, rows)
    cluster.until(lambda: cluster.patches() == held, 10, "just the circuits of the jobs")
    assert not cluster.ocsctl("reconcile").get("drift")


def hang(cluster, yes):
    """The machine of the primary hangs: a process that is merely stopped can still be connected
    to, and commands would wait for it."""
    rule = "prio 5 to 127.0.0.1 ipproto tcp dport 6817 unreachable"
    if yes:
        cluster.run("ip rule add prio 10 lookup local && ip rule del prio 0 lookup local && "
                    "ip rule add " + rule)
    end(cluster, "head", signal.SIGSTOP if yes else signal.SIGCONT)
    if not yes:
        cluster.resume()
        cluster.run("ip rule del " + rule + " && ip rule add prio 0 lookup local && "
                    "ip rule del prio 10 lookup local")


def subscribers(cluster):
    """slurmctlds that are connected to ocsd."""
    count = 0
    for pid in pids(cluster, "head") + pids(cluster, "other"):
        inodes = cluster.out("ls -l /proc/%s/fd" % pid)
        for line in cluster.out(["ss", "-xn"]).splitlines():
            words = line.split()
            if len(words) > 7 and "socket:[%s]" % words[5] in inodes and \
                    words[7] in cluster.out("ss -xn src %s" % cluster.path("ocsd.sock")):
                count += 1
    return count


def test_backup_takes_over_and_gives_back(twin):
    """The primary is killed: the running job keeps its circuits, the pending one starts
    under the backup, one that ends is torn down; then the primary returns."""
    job = twin.sbatch("--shape=4x2x2")
    twin.running(job)
    ending = twin.sbatch("--shape=4x2x2", script="sleep 15")
    twin.running(ending)
    waiting = twin.sbatch("--shape=4x2x2")
    held = twin.circuit_patches(twin.placement(job))
    twin.saved(waiting)
    since = len(log(twin, "other"))
    end(twin, "head", signal.SIGKILL)
    in_charge(twin, "other", since)
    assert twin.state(job) == "RUNNING" and held <= twin.patches()
    twin.running(waiting, 60)
    assert twin.lit(waiting) and held <= twin.patches()
    twin.wait(ending, ("COMPLETED", "GONE"), 60)
    # The primary comes back: the backup steps down and lets go of ocsd.
    start_head(twin)
    assert twin.state(job) == "RUNNING" and twin.state(waiting) == "RUNNING"
    assert held <= twin.patches() and twin.lit(waiting)
    twin.until(lambda: subscribers(twin) == 1, 30, "one slurmctld at ocsd")
    twin.run(["scancel", str(waiting)])
    again = twin.sbatch("--shape=4x2x2")
    twin.running(again, 60)
    assert twin.lit(again) and held <= twin.patches()
    twin.cancel_all()
    twin.until(lambda: not twin.patches(), 30, "dark switches")


def test_takeover_by_command(twin):
    """`scontrol takeover` to a backup that was in charge before and knows neither what
    started since nor what ocs.yaml says by now; later it is stopped and the primary
    returns."""
    old = twin.sbatch("--shape=4x2x2")
    twin.running(old)
    held = twin.circuit_patches(twin.placement(old))
    since = len(log(twin, "other"))
    twin.run(["scontrol", "takeover"], check=False)
    in_charge(twin, "other", since)
    assert "ocs: read " in log(twin, "other")[since:]
    assert twin.state(old) == "RUNNING" and held <= twin.patches()
    job = twin.sbatch("--shape=4x2x2")
    twin.running(job)
    assert twin.lit(job) and held <= twin.patches()
    twin.run(["scancel", str(job)])
    twin.until(lambda: twin.patches() == held, 30, "its circuits to go")
    end(twin, "other", signal.SIGTERM)
    twin.until(lambda: not pids(twin, "other"), 30, "the backup to end")
    start_head(twin)
    assert twin.state(old) == "RUNNING" and held <= twin.patches()
    twin.cancel_all()
    twin.until(lambda: not twin.patches(), 30, "dark switches")


def restart_without_ocsd(cluster):
    """The primary reads its jobs and cannot tell ocsd."""
    cluster.kill("ocsd", signal.SIGTERM)
    end(cluster, "head", signal.SIGTERM)
    cluster.until(lambda: not pids(cluster, "head"), 30, "the primary to end")
    since = len(log(cluster, "head"))
    cluster.spawn(["slurmctld", "-D"], cluster.path("slurmctld.err"))
    cluster.until(lambda: "Running as primary controller" in log(cluster, "head")[since:], 60,
                  lambda: "the primary\n" + log(cluster, "head")[since:][-3000:])


@pytest.mark.parametrize("ocsd", ("there", "away"))
def test_primary_hangs_and_wakes_late(twin, ocsd):
    """The primary hangs; the backup takes over, ends a job and starts another in its place;
    then the primary goes on as if nothing had happened: it must not touch what is not its
    own any more, also if it has not had ocsd yet.  Started anew it knows all jobs."""
    if not pids(twin, "head"):
        start_head(twin)
    if not pids(twin, "other"):
        start_other(twin)
    kept = twin.sbatch("--shape=4x2x2")
    twin.running(kept)
    ended = twin.sbatch("--shape=4x2x2")
    twin.running(ended)
    twin.saved(ended)
    if ocsd == "away":
        restart_without_ocsd(twin)
    since, before = len(log(twin, "other")), len(log(twin, "head"))
    hang(twin, True)
    if ocsd == "away":
        twin.start_ocsd()
    in_charge(twin, "other", since)
    twin.run(["scancel", str(ended)])
    twin.wait(ended, ("CANCELLED", "GONE"))
    new = twin.sbatch("--shape=4x2x2")
    twin.running(new)
    assert set(nodes_of(twin, new)) == set(twin.torus_nodes) - set(nodes_of(twin, kept))
    held = twin.circuit_patches(twin.placement(kept)) | twin.circuit_patches(twin.placement(new))
    assert twin.patches() == held
    hang(twin, False)

    def woken():
        assert twin.patches() == held, "circuits of living jobs were cut"
        return not pids(twin, "head")
    twin.until(woken, 30, lambda: "the late primary to end\n" + log(twin, "head")[before:][-3000:])
    assert "another slurmctld has taken charge" in log(twin, "head")[before:]
    # It may have asked the backup to give way before it noticed.
    twin.until(lambda: (twin.state(kept), twin.state(new)) == ("RUNNING", "RUNNING"), 60,
               lambda: "both jobs to be known\n" + log(twin, "other")[since:][-3000:])
    agree(twin, held, kept, new)
    end(twin, "other", signal.SIGTERM)
    twin.until(lambda: not pids(twin, "other"), 30, "the backup to end")
    start_head(twin)
    assert twin.state(kept) == "RUNNING" and twin.state(new) == "RUNNING"
    agree(twin, held, kept, new)
    # No node is given twice.
    waiting = twin.sbatch("--shape=4x2x2")
    twin.until(lambda: "needs" in twin.job(waiting).get("Reason", ""), 30,
               lambda: "it to be refused nodes\n%s" % twin.job(waiting))
    assert twin.state(waiting) == "PENDING"
    twin.run(["scancel", str(new)])
    twin.running(waiting)
    assert twin.lit(waiting) and twin.lit(kept)
    twin.cancel_all()
    twin.until(lambda: not twin.patches(), 30, "dark switches")
