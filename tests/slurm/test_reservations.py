# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""`ocsctl reserve`: reservations of Slurm whose nodes fit together."""

import json
import re

import pytest

from cluster import seconds


@pytest.fixture(scope="module")
def kept(make_cluster):
    """Four cubes of four nodes, and two plain nodes."""
    cluster = make_cluster(tile=(4, 4, 1), delay_ms=1, plain=2, config={
        "SchedulerParameters": "bf_interval=1,sched_interval=2,bf_resolution=1"})
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def idle(kept):
    yield
    kept.run("squeue -h -o %A | sort -u | xargs -r scancel", check=False)
    kept.until(lambda: not kept.out(["squeue", "-h"]).strip(), 60, "an empty queue")
    for name in reservations(kept):
        kept.run(["scontrol", "delete", "ReservationName=" + name], check=False)
    kept.wait_idle()
    kept.until(lambda: not kept.patches(), 30, "dark switches")


def reservations(cluster):
    text = cluster.out(["scontrol", "-o", "show", "reservation"])
    return dict(re.findall(r"ReservationName=(\S+) .*? Nodes=(\S+)", text))


def reserve(cluster, *arguments, users="root"):
    """What `ocsctl reserve` says of what it made."""
    who = ["--users=" + users] if users else []
    done = cluster.run(["ocsctl", "reserve", "--json", "--fabric", cluster.yaml] + who +
                       list(arguments))
    return json.loads(done.stdout)


def refused(cluster, *arguments, code=4, user=None):
    done = cluster.run(["ocsctl", "reserve", "--users=root", "--fabric", cluster.yaml] +
                       list(arguments), check=False, user=user)
    assert done.returncode == code and not done.stdout, (done.returncode, done.stdout, done.stderr)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def expand(cluster, nodes):
    return set(cluster.out(["scontrol", "show", "hostnames", nodes]).split())


def test_dry_run_prints_and_makes_nothing(kept):
    done = kept.run(["ocsctl", "reserve", "8x4x4", "--duration=30", "--users=root", "--dry-run",
                     "--fabric", kept.yaml])
    assert "nodes: n[0-7]" in done.stdout and "scontrol create reservation" in done.stdout
    assert not reservations(kept)
    # The line that it prints is the one that works.
    kept.run(done.stdout.splitlines()[-1])
    assert list(reservations(kept).values()) == ["n[0-7]"]


def test_jobs_inside_get_exactly_its_nodes_and_others_none(kept):
    busy = kept.sbatch("-N1", "-n1", "--exclusive", "-w", "n1", "-t", "60")
    kept.running(busy)
    made = reserve(kept, "8x4x4", "--duration=30", "--name=big")
    assert made["reservation"] == "big" and reservations(kept) == {"big": made["nodes"]}
    assert not {"n0", "n1", "n2", "n3"} & expand(kept, made["nodes"])
    inside = kept.sbatch("--shape=8x4x4", "--reservation=big", "-t", "10")
    outside = kept.sbatch("--shape=8x4x4", "-t", "10")
    other = kept.sbatch("--shape=4x4x4", "-t", "10")
    fields = kept.running(inside)
    assert fields["NodeList"] == made["nodes"]
    assert sorted(x["node"] for x in made["placement"]["xpus"]) == \
        sorted(x["node"] for x in kept.placement(inside)["xpus"])
    assert not expand(kept, kept.running(other)["NodeList"]) & expand(kept, made["nodes"])
    assert kept.state(outside) == "PENDING"
    # What is larger than the reservation is refused, with a line that says so.
    message = kept.refused("--shape=16x4x4", "--reservation=big")
    assert "does not fit the 8 of 16 nodes that --reservation leaves it: " in message
    assert "would fit there: " in message and "8x4x4" in message


def test_jobs_outside_are_kept_away_by_backfill_too(kept):
    made = reserve(kept, "--cubes=3", "--start=now+4minutes", "--duration=30")
    assert made["nodes"] == "n[0-11]"
    early = kept.sbatch("--shape=16x4x4", "-t", "1")
    kept.running(early)                         # it ends before
    kept.run(["scancel", str(early)])
    large = kept.sbatch("--shape=16x4x4", "-t", "10")
    first = kept.sbatch("--shape=4x4x4", "-t", "10")
    second = kept.sbatch("--shape=4x4x4", "-t", "10")
    assert kept.running(first)["NodeList"] == "n[12-15]"
    kept.until(lambda: kept.job(large)["StartTime"] != "Unknown", 20, "an estimate")
    assert seconds(kept.job(large)["StartTime"]) >= made["end"] - 1, kept.job(large)
    assert kept.state(second) == "PENDING"
    short = kept.sbatch("--shape=8x4x4", "-t", "1")
    assert expand(kept, kept.running(short)["NodeList"]) <= expand(kept, made["nodes"])


def test_maintenance_windows_over_cubes_and_switches(kept):
    job = kept.sbatch("-N1", "-n1", "--exclusive", "-w", "n5", "-t", "20")
    kept.running(job)
    text = refused(kept, "--cube=c0,c1", "--duration=60", "--flags=maint")
    assert "job %d may run on n5 until" % job in text and "ignore_jobs" in text
    made = reserve(kept, "--cube=c0,c1", "--duration=60", "--flags=maint,ignore_jobs", users=None)
    assert made["nodes"] == "n[0-7]"
    assert kept.state(job) == "RUNNING"
    assert expand(kept, kept.running(kept.sbatch("--shape=4x4x4", "-t", "9"))["NodeList"]) <= \
        expand(kept, "n[8-15]")
    waits = kept.sbatch("--shape=8x4x4", "-t", "9")
    # At that switch end the ports of z at position 2,2: the lowest and the highest layer.
    made = reserve(kept, "--switch=ocs-z-2-2", "--duration=60", "--flags=maint,ignore_jobs",
                   users=None)
    assert expand(kept, made["nodes"]) == {"n%d" % n for n in range(16) if n % 4 in (0, 3)}
    assert kept.state(waits) == "PENDING"
    kept.run(["scontrol", "delete", "ReservationName=" + list(reservations(kept))[0]])
    middle = kept.sbatch("--shape=4x4x2", "--conn-type=mesh", "-t", "9")
    assert {int(n[1:]) % 4 for n in expand(kept, kept.running(middle)["NodeList"])} <= {1, 2}


def test_only_what_will_be_free(kept):
    """A job that runs until then is no hindrance, one that runs longer is named, with a start
    that would do."""
    holder = kept.sbatch("-N1", "-n1", "--exclusive", "-w", "n6", "-t", "5")
    kept.running(holder)
    text = refused(kept, "16x4x4", "--duration=30")
    assert "needs 4 cubes" in text and "would fit then: 12x4x4" in text
    assert "job %d may run on n6 until" % holder in text
    start = re.search(r"--start=(\S+) would do", text).group(1)
    assert start == kept.job(holder)["EndTime"]
    made = reserve(kept, "16x4x4", "--duration=30", "--start=" + start)
    assert made["nodes"] == "n[0-15]"
    # Drained things are not counted on.
    kept.run(["ocsctl", "drain", "cube", "c2", "--reason", "x", "--fabric", kept.yaml])
    kept.run(["scontrol", "delete", "ReservationName=" + made["reservation"]])
    try:
        assert "1 is drained" in refused(kept, "16x4x4", "--duration=30", "--start=" + start)
        assert reserve(kept, "--cubes=3", "--duration=30", "--start=" + start)["nodes"] == \
            "n[0-7,12-15]"
    finally:
        kept.run(["ocsctl", "resume", "cube", "c2", "--fabric", kept.yaml])


def test_drained_ports_and_xpus_are_avoided(kept):
    """Which only ocsd knows; without it a note says so."""
    def wanted(*what):
        return kept.out(["ocsctl", "reserve", *what, "--duration=30", "--users=root", "--dry-run",
                         "--fabric", kept.yaml])
    assert "nodes: n[0-3]" in wanted("4x4x4") and "note:" not in wanted("4x4x4")
    kept.ocsctl("drain", "port", "ocs-x-0-0:1", "--reason", "dust")
    kept.ocsctl("drain", "xpu", "c1:0,0,0", "--reason", "burnt")
    try:
        assert "nodes: n[8-11]" in wanted("4x4x4")
        assert "nodes: n[0-3,8-11]" in wanted("--cubes", "2")
        kept.kill("ocsd")
        assert "note:  ocsd does not say which ports and XPUs are drained" in wanted("4x4x4")
    finally:
        if not kept.alive("ocsd"):
            kept.start_ocsd()
        kept.ocsctl("resume", "port", "ocs-x-0-0:1")
        kept.ocsctl("resume", "xpu", "c1:0,0,0")
    assert "nodes: n[0-3]" in wanted("4x4x4")


def test_overlaps_are_refused_with_one_line(kept):
    reserve(kept, "--cube=c1", "--duration=60", "--name=first")
    text = refused(kept, "--cube=c0,c1", "--duration=10")
    assert "reservation first has n[4-7] from" in text
    assert refused(kept, "--cubes=4", "--duration=10") == \
        "ocsctl: 4 cubes are asked for, 3 will be wholly free; ask for fewer or start later\n"
    assert "reservation first has" in refused(kept, "16x4x4", "--duration=10")
    assert list(reservations(kept)) == ["first"], "a refusal left something behind"
    # Elsewhere, and later, there is room.
    assert reserve(kept, "12x4x4", "--duration=10")["nodes"] == "n[0-3,8-15]"
    assert reserve(kept, "--cube=c1", "--duration=10", "--start=now+61minutes")["nodes"] == "n[4-7]"


def test_it_ends_and_the_cubes_come_back(kept):
    made = reserve(kept, "12x4x4", "--duration=1")
    waits = kept.sbatch("--shape=16x4x4", "-t", "5")
    kept.until(lambda: "1_is_free_(12_idle_nodes_are_reserved)" in kept.job(waits).get("Reason", ""),
               20, lambda: "a reason: %s" % kept.job(waits))
    assert kept.state(waits) == "PENDING"
    kept.run(["scontrol", "update", "ReservationName=" + made["reservation"], "EndTime=now+5"])
    assert kept.running(waits, 90)["NodeList"] == "n[0-15]"
    kept.until(lambda: not reservations(kept), 90, "the reservation to be forgotten")


def test_bad_wishes_and_who_may_not(kept):
    assert "no cube 'c9'" in refused(kept, "--cube=c9", "--duration=1", code=2)
    assert "no switch" in refused(kept, "--switch=nowhere", "--duration=1", code=2)
    assert "larger than the machine" in refused(kept, "20x4x4", "--duration=1", code=3)
    assert "section pod has 4" in refused(kept, "--cubes=5", "--duration=1", code=3)
    text = refused(kept, "4x4x4", "--duration=1", "--flags=sometimes", code=1)
    assert "sometimes" in text
    text = refused(kept, "4x4x4", "--duration=1", code=1, user="nobody")
    assert "only operators of Slurm may make reservations" in text, text
    assert not reservations(kept)
