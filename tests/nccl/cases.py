# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What doc/nccl.md promises, case by case; `--table` prints what the judge finds."""

import itertools
import re
import sys

import fabrics
import judge
import machines
import mutants
import torus

RELEASES = ["2.21.5", "2.22.3", "2.24.3", "2.25.1", "2.26.2", "2.28.9", "2.29.2", "2.29.7", "2.30.7"]
GRAPH = "  graph_file: true\n"
# GPUs, ports, sockets, NVLink, functions of a NIC, servers
SERVERS = [
    (1, 2, 1, False, 1, 4), (1, 4, 1, False, 1, 8), (2, 2, 1, False, 1, 4), (2, 2, 2, False, 1, 16),
    (4, 4, 1, True, 1, 8), (4, 4, 2, False, 1, 8), (4, 2, 2, True, 1, 6), (8, 2, 1, True, 1, 4),
    (8, 4, 2, False, 1, 4), (8, 4, 2, True, 1, 32), (8, 8, 2, True, 1, 8), (8, 8, 2, False, 1, 16),
    (8, 4, 2, True, 2, 6), (8, 8, 2, False, 2, 8), (2, 4, 1, False, 2, 2), (4, 8, 2, True, 1, 3),
]
number = 0


def result(good, name, seen=""):
    global number
    number += 1
    print("%s %d - %s" % ("ok" if good else "not ok", number, name))
    if not good:
        print("\n".join("# " + line for line in str(seen).splitlines()[:30]))


def words(gpus, ports, sockets, nvlink, functions, servers):
    return "%d servers of %d GPUs, %d ports, %d sockets%s%s" % (
        servers, gpus, ports, sockets, ", NVLink" if nvlink else "", ", two-function NICs" if functions > 1 else "")


def machine_of(case, swapped=False):
    gpus, ports, sockets, nvlink, functions, _ = case
    return machines.Machine(gpus, ports, sockets, nvlink, functions, swapped=swapped)


def all_on_circuits(jobs, releases):
    """The first job and release where not all hops are on circuits, or None."""
    for name, job in jobs:
        for release in releases:
            verdict = job.judge(release)
            if not verdict.good() or verdict.doubled:
                return "%s, NCCL %s: %s\n%s" % (name, release, verdict, job.servers[0].warnings)
    return None


def graph_files():
    """The graph file steers every release alike."""
    for directed in (False, True):
        jobs = [(words(*case), fabrics.Job(machine_of(case), case[-1], directed=directed, nccl=GRAPH))
                for case in SERVERS if case[0] > 1]
        wrong = all_on_circuits(jobs, RELEASES)
        result(not wrong, "%s: graph files, %d machines" % ("directed" if directed else "duplex", len(jobs)), wrong)


def sockets():
    """Processors are not doubled and servers not divided, and all NICs are used."""
    for case in SERVERS:
        if case[2] == 1:
            continue
        job = fabrics.Job(machine_of(case), case[-1], nccl="  graph_file: false\n")
        seen = [(release, job.judge(release)) for release in RELEASES]
        bad = [r for r in seen if r[1].doubled or r[1].divided or r[1].channels != len(job.held(0))]
        result(not bad, words(*case) + ": all NICs, each processor once", "\n".join("%s %s" % b for b in bad))


def defaults():
    """Without a word in ocs.yaml about it, whole nodes are on circuits; else warnings say what is lost."""
    for directed in (False, True):
        kind = "directed" if directed else "duplex"
        jobs = [(words(*case), fabrics.Job(machine_of(case), case[-1], directed=directed))
                for case in SERVERS if case[0] > 1]
        wrong = all_on_circuits(jobs, RELEASES)
        result(not wrong, "%s: defaults, %d machines" % (kind, len(jobs)), wrong)
        noisy = [name + ": " + job.servers[0].warnings for name, job in jobs if job.servers[0].warnings]
        result(not noisy, kind + ": nothing to warn about", "\n".join(noisy))
        silent = [name for name, job in jobs if not all(s.note and "NCCL_GRAPH_FILE" in s.env for s in job.servers)]
        result(not silent, kind + ": what the graph file costs is noted", "\n".join(silent))
        if directed or not fabrics.namespaces_work():
            continue
        jobs = [(words(*case), fabrics.Job(machine_of(case), case[-1], subnets=True)) for case in SERVERS]
        wrong = all_on_circuits(jobs, ["2.30.7"])
        result(not wrong, "subnets, %d machines" % len(jobs), wrong)


def losses():
    """What leaves the circuits is what `warnings` says."""
    for case, nccl in itertools.product(SERVERS, ("  graph_file: false\n", "")):
        if nccl == "" and case[0] > 1:
            continue
        job = fabrics.Job(machine_of(case), case[-1], nccl=nccl)
        seen = job.judge("2.28.9")
        said = "%d of %d hops between nodes (%d %%)" % (seen.hops - seen.right, seen.hops,
                                                        100 * (seen.hops - seen.right) // seen.hops)
        if seen.good():
            said = ""
        result(all(said in s.warnings if said else not s.warnings for s in job.servers),
               words(*case) + ": warns of " + (said or "nothing"), "%s\n%s" % (seen, job.servers[0].warnings))


def releases():
    """Where the kernel numbers ports otherwise than the bus, only releases that sort them get the file."""
    case = (8, 4, 2, True, 1, 4)
    for nccl, release, known, good in (("", "2.30.7", True, True), ("", "2.29.2", True, False),
                                       ("", "2.30.7", False, False), ("  version: 2.29.7\n", "2.29.7", False, True),
                                       ("  version: 2.28.9\n", "2.28.9", False, False)):
        job = fabrics.Job(machine_of(case, swapped=True), case[-1], nccl=nccl)
        seen = job.judge(release, known=known)
        warned = job.servers[0].warnings
        result(seen.good() == good and not seen.failure and bool(warned) == (nccl != "  version: 2.29.7\n"),
               "ports numbered otherwise, ocs.yaml%s, NCCL %s%s" % (nccl.rstrip() or " silent", release,
                                                                  "" if known else " not seen"),
               "%s\n%s" % (seen, warned))
    bad = fabrics.Job(machine_of(case, swapped=True), case[-1], nccl=GRAPH).judge("2.28.9")
    result(not bad.good(), "the same file with 2.28.9 is wrong", bad)
    single = (1, 2, 1, False, 1, 4)
    for version, good in (("2.30.7", True), ("2.28.9", False)) if fabrics.namespaces_work() else ():
        job = fabrics.Job(machine_of(single), 4, subnets=True, nccl="  version: %s\n" % version)
        seen = job.judge(version)
        result(seen.good() == good and good != ("subnet" in job.servers[0].warnings),
               "one GPU, subnets, NCCL " + version, "%s\n%s" % (seen, job.servers[0].warnings))
    old = fabrics.Job(machine_of(case), 4, nccl="  version: 2.21.5\n")
    result("connects trees" in old.servers[0].warnings and old.judge("2.21.5").trees, "2.21 connects trees at its start")


def rings():
    """Parallel rings give one communicator of stock NCCL every circuit."""
    for ports, servers, kind, gbytes in ((8, 8, "permuted", 100), (8, 8, "stock", 200), (4, 16, "stock", 100)):
        job = fabrics.Job(machines.Machine(8, ports, 2, True), servers,
                          plan=("--rings", kind, "--strategy", "paper"))
        seen = job.judge("2.28.9")
        result(seen.good() and seen.real == gbytes,
               "%d servers, %d ports, rings %s: %g GB/s" % (servers, ports, kind, gbytes), seen)


def judge_sees():
    """The judge itself: what is taken out of a good job is seen."""
    case = (8, 4, 2, False, 1, 4)
    job = fabrics.Job(machine_of(case), 4, nccl=GRAPH)
    whole = [dict(s.files) for s in job.servers], [dict(s.env) for s in job.servers]

    def after(change, release="2.30.7"):
        for s, files, env in zip(job.servers, *whole):
            s.files, s.env = dict(files), dict(env)
            change(s)
        return job.judge(release)

    def no_affinity(s):
        s.files["topo"] = "".join(part if i == 0 else part.split('"', 1)[1]
                                  for i, part in enumerate(s.files["topo"].split(' affinity="')))

    def without(key):
        return lambda s: s.env.pop(key, None)

    result(after(lambda s: None).good(), "the job as it is")
    result(after(no_affinity).doubled, "no affinity: processors twice")
    result(not after(no_affinity, "2.21.5").doubled, "no affinity: once in 2.21")
    result(after(without("NCCL_NET_DISABLE_INTRA")).divided, "no NCCL_NET_DISABLE_INTRA: two servers of one")
    result(not after(without("NCCL_GRAPH_FILE")).good(), "no NCCL_GRAPH_FILE: wrong ports")
    verdict = job.judge("2.30.7", used=2)
    result(verdict.failure is None, "graph file taken out: two GPUs", verdict)
    after(lambda s: None)
    result("dev" in (job.judge("2.30.7", used=2).failure or ""), "graph file: two of eight GPUs")

    pair = fabrics.Job(machines.Machine(8, 4, 2, False, 2), 2, nccl=GRAPH)
    for s in pair.servers:
        s.env.pop("NCCL_NET_MERGE_LEVEL"), s.env.pop("NCCL_IB_MERGE_NICS")
    result(not pair.judge("2.28.9").good(), "no merge level: two functions are one device")

    crossed = fabrics.Job(machines.Machine(8, 4, 2, True), 2, nccl=GRAPH)
    result(crossed.judge("2.25.1").good(), "parallel circuits", crossed.judge("2.25.1"))
    for s in crossed.servers:
        s.files["graph"] = s.files["graph"].replace('crossnic="0"', 'crossnic="1"')
    for s in crossed.servers[::2]:
        # the same channels, in another order than that of the neighbour
        head, *channels = s.files["graph"].split("    <channel>")
        channels[-1], tail = channels[-1].split("  </graph>")
        s.files["graph"] = head + "".join("    <channel>" + channels[c ^ 1] for c in range(len(channels))) \
            + "  </graph>" + tail
    seen = [crossed.judge(r).good() for r in ("2.25.1", "2.26.2")]
    result(seen == [True, False], "crossnic 1 exchanges channels up to 2.25 only", seen)


def check_of_mutants(seed=1):
    """ocsctl nccl-check against files whose fault, or harmlessness, is known."""
    job = fabrics.Job(machine_of((8, 4, 2, False, 1, 4)), 4)
    for kind, count in (("topo", 600), ("graph", 600)):
        text = job.servers[0].files[kind]
        made = list(mutants.make(text, "topology" if kind == "topo" else kind, count, seed))
        wrong = ["%s, %s: %s" % (name, "harmful, accepted" if harms else "harmless, refused", where)
                 for (name, harms, new), where in fabrics.checked(made) if where is not None]
        harmful = sum(harms for _, harms, _ in made)
        result(not wrong, "nccl-check: %d of %d %s mutants are refused, the harmful ones" % (
            harmful, len(made), kind), "\n".join(["%d wrong" % len(wrong)] + wrong))


def along_dimensions():
    """Communicators along each dimension of jobs on cubes, with the graph file of their line."""
    if not fabrics.namespaces_work():
        return
    for (shape, conn), (tile, sockets) in itertools.product(
            ((s, None) for s in ("4x4x4", "8x4", "16", "4x8x2")), (((1, 1, 1), 1), ((2, 2, 1), 1), ((2, 2, 2), 2))):
        job = torus.Job(shape, tile, conn, sockets=sockets, network=torus.network(tile))
        lines = [(d, n) for d, extent in enumerate(job.shape) for n in range(len(job.lines(d))) if extent > 1]
        seen = [(line, job.judge(*line, "2.30.7")) for line in lines]
        bad = [s for s in seen if s[1] and not s[1].good()]
        result(not bad and any(v for _, v in seen), "%s, tile %s: %d communicators along %d dimensions" % (
            shape, "x".join(map(str, tile)), len(seen), len({d for d, _ in lines})),
            "\n".join("%s %s" % b for b in bad))
        listed = [[o["dim"], o["ranks"]] for o in job.placement["orders"]]
        result(listed == [[d, job.lines(d)] for d, extent in enumerate(job.shape) if extent > 1], "orders of ranks")
        single = len([e for e in job.shape if e > 1]) == 1
        wrong = [s.name for s in job.servers.values() if bool(s.warnings) == single or
                 not single and not warned_of(job, s)]
        result(not wrong, "warnings have what is lost without them", "%s %s" % (
            wrong, job.servers[wrong[0]].warnings if wrong else ""))
        if single:
            verdict = job_as_it_is(job)
            result(verdict.good(), "one dimension: all ranks by default", verdict)


def warned_of(job, server):
    """Is what SERVER warns of true of its first line that leaves links?"""
    said = re.search(r"without it (\d+) of (\d+) hops between nodes along dimension (\d+) \((\d+) %\).* all ranks (\d+) "
                     r"of (\d+) hops", server.warnings)
    if not said:
        return False
    astray, hops, dim, percent, unlinked, every = map(int, said.groups())
    number = next(n for n, ranks in enumerate(job.lines(dim)) if any(job.xpus[r]["node"] == server.name for r in ranks))
    seen = job.judge(dim, number, "2.30.7", files=False)
    order = list(dict.fromkeys(x["node"] for x in job.xpus))
    joined = {(a[0], b[0]) for a, b in job.joined.items()}
    return (seen.hops - seen.right, seen.hops, 100 * astray // hops) == (astray, hops, percent) and \
        (sum(pair not in joined for pair in zip(order, order[1:] + order[:1])), len(order)) == (unlinked, every)


def job_as_it_is(job):
    """What a communicator of all ranks does with the variables that the job has."""
    for s in job.servers.values():
        if "NCCL_GRAPH_FILE" in s.env:
            s.text["graph-all.xml"] = s.text["graph.xml"]
    return job.judge("all", 0, "2.30.7", ranks=range(len(job.xpus)))


def limits_of_links():
    """What stock NCCL cannot be led to do on cubes is in the warnings."""
    lone, shared = torus.Job("4x4", (1, 1, 1), subnets=False), torus.Job("4x4", (2, 2, 1), subnets=False)
    result("no NCCL graph file along dimension 0: with one GPU in a node" in lone.servers["n0"].warnings and
           not any(name.startswith("graph-") for name in lone.servers["n0"].text), "one XPU in a node, no subnets",
           lone.servers["n0"].warnings)
    bad = [v for v in (shared.judge(d, n, "2.28.9") for d in (0, 1) for n in range(4)) if not v.good()]
    result(not bad, "two XPUs of a line in a node: right without subnets and with 2.28.9", bad and bad[0])
    if not fabrics.namespaces_work():
        return
    mesh = torus.Job("4x4", (1, 1, 1), "mesh,torus", network=torus.network((1, 1, 1)))
    seen = mesh.judge(0, 0, "2.30.7")
    result("along dimension 0: 1 of 4 hops between nodes has no link" in mesh.servers["n0"].warnings and
           "graph-1-0.xml" in mesh.servers["n0"].text and not seen.good(), "a line has no ring", mesh.servers["n0"].warnings)
    old = torus.Job("4x4", (1, 1, 1), nccl="  version: 2.28.9\n", network=torus.network((1, 1, 1)))
    result("does not choose ports by subnet" in old.servers["n0"].warnings and not old.judge(0, 0, "2.28.9").good(),
           "an older NCCL", old.servers["n0"].warnings)
    twisted = torus.Job("4x4x8_twisted", (2, 2, 1), network=torus.network((2, 2, 1)))
    seen = [(len(ranks), twisted.judge(order["dim"], n, "2.30.7", ranks=ranks))
            for order in twisted.placement["orders"] for n, ranks in enumerate(order["ranks"])]
    bad = [str(v) for length, v in seen if length != 8 or not v.good()]
    result(len(seen) == 48 and not bad, "twisted: rings through two lines", "\n".join(bad))
    # the judge: a file of another line, and two addresses exchanged, are seen
    job = torus.Job("4x4", (1, 1, 1), network=torus.network((1, 1, 1)))
    server = job.servers["n5"]
    kept = dict(server.addresses)
    result(job.judge(0, 1, "2.30.7").good() and job.judge(1, 1, "2.30.7").good(), "the job as it is")
    line = next(n for n in range(4) if any(job.xpus[r]["node"] == "n5" for r in job.lines(0)[n]))
    across = next(n for n in range(4) if any(job.xpus[r]["node"] == "n5" for r in job.lines(1)[n]))
    own = server.text["graph-0-%d.xml" % line]
    server.text["graph-0-%d.xml" % line] = server.text["graph-1-%d.xml" % across]
    result(not job.judge(0, line, "2.30.7").good(), "the file of another line is seen")
    server.text["graph-0-%d.xml" % line] = own
    first, second = sorted(kept)[:2]
    server.addresses[first], server.addresses[second] = kept[second], kept[first]
    bad = [job.judge(d, n, "2.30.7").good() for d, n in ((0, line), (1, across))]
    result(not all(bad), "two addresses exchanged are seen", bad)


def table():
    for case, directed in itertools.product(SERVERS, (False, True)):
        print("%s, %s" % (words(*case), "directed" if directed else "duplex"))
        for title, subnets, nccl in (("defaults", False, ""), ("graph_file: false", False, "  graph_file: false\n"),
                                     ("graph_file: true", False, GRAPH), ("subnets", True, "")):
            job = fabrics.Job(machine_of(case), case[-1], directed=directed, subnets=subnets, nccl=nccl)
            for release in ("2.21.5", "2.28.9", "2.30.7"):
                print("    %-18s %-7s %s" % (title, release, job.judge(release)))
    for shape, (tile, sockets_) in itertools.product(("4x4x4", "8x4", "16", "4x8x2"),
                                                     (((1, 1, 1), 1), ((2, 2, 1), 1), ((2, 2, 2), 2))):
        job = torus.Job(shape, tile, sockets=sockets_, network=torus.network(tile))
        print("torus, %s, tile %s" % (shape, "x".join(map(str, tile))))
        for dim in (d for d, extent in enumerate(job.shape) if extent > 1):
            for title, files in (("graph file", True), ("without", False)):
                print("    dimension %d, %-10s %s" % (dim, title, job.judge(dim, 0, "2.30.7", files) or "in a node"))
        print("    all ranks               %s" % job.judge(0, 0, "2.30.7", False, range(len(job.xpus))))


def main(arguments):
    if arguments == ["--table"]:
        table()
        return
    for test in (judge_sees, sockets, graph_files, defaults, losses, releases, rings, along_dimensions,
                 limits_of_links, check_of_mutants):
        test()
    print("1..%d" % number)
    sys.stdout.flush()
