# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs on switched servers get a plan, made at the prolog, and its circuits."""

import json

import pytest


def test_plan_and_circuits(pod):
    job = pod.sbatch("-p", "direct", "-N6", script="cat $SLURM_OCS_DIR/plan.json; sleep 300")
    pod.running(job)
    path = pod.job_dir(pod.job(job)["BatchHost"], job) + "/plan.json"
    plan = json.loads(pod.out(["cat", path]))
    assert plan["servers"] == 6 and plan["degree"] == 4 and not plan["directed"]
    assert sorted(plan["nodes"]) == ["d%d" % i for i in range(6)]
    joined = {(s, i): o for s, i, o in pod.patches()}
    size = 16
    for circuit in plan["circuits"]:
        (a, a_port), (b, b_port) = circuit["a"], circuit["b"]
        assert a_port == b_port, "interface i reaches switch i only"
        switch = "direct-%d" % circuit["ocs"]
        pa = int(plan["nodes"][a][1:]) + 1
        pb = int(plan["nodes"][b][1:]) + 1
        assert joined.pop((switch, pa)) == size + pb
        assert joined.pop((switch, pb)) == size + pa
    assert not joined
    # ocsd sends circuits; the list of routes is made on the node
    assert len(plan["routes"]) == 6 * 5
    pairs = {frozenset((c["a"][0], c["b"][0])) for c in plan["circuits"]}
    for group in plan["groups"]:
        for ring in group["rings"]:
            for i, server in enumerate(ring):
                assert frozenset((server, ring[(i + 1) % len(ring)])) in pairs
    pod.run(["scancel", str(job)])
    pod.until(lambda: not pod.patches(), 20, "dark switches")


def test_two_jobs_share_no_port(pod):
    first = pod.sbatch("-p", "direct", "--shape=4")
    second = pod.sbatch("-p", "direct", "-N2")
    pod.running(first)
    pod.running(second)
    nodes = [set(pod.out(["scontrol", "show", "hostnames", pod.job(job)["NodeList"]]).split())
             for job in (first, second)]
    assert len(nodes[0]) == 4 and len(nodes[1]) == 2 and not nodes[0] & nodes[1]
    assert pod.patches()


def test_shape_larger_than_the_servers(pod):
    message = pod.refused("-p", "direct", "--shape=4x4")
    assert "16" in message and "6" in message


def test_demand_file(pod):
    pod.write("demand.json", json.dumps(
        {"allreduce": [{"members": [0, 1, 2, 3], "bytes": 1000000}]}))
    job = pod.sbatch("-p", "direct", "-N4", "--ocs-demand=" + pod.path("demand.json"))
    pod.running(job)
    path = pod.job_dir(pod.job(job)["BatchHost"], job) + "/plan.json"
    plan = json.loads(pod.out(["cat", path]))
    assert [sorted(g["members"]) for g in plan["groups"]] == [[0, 1, 2, 3]]
    pod.write("bad.json", "{\"allreduce\": ")
    assert "bad.json" in pod.refused("-p", "direct", "-N4",
                                     "--ocs-demand=" + pod.path("bad.json"))
    pod.refused("-p", "direct", "-N4", "--ocs-demand=/nowhere/demand.json")


def test_rings_option(pod):
    """Parallel rings for one communicator, with a demand and without; the option comes before it."""
    pod.write("demand.json", json.dumps(
        {"rings": "stock", "allreduce": [{"members": [0, 1, 2, 3], "bytes": 1000000}]}))

    def steps(*words):
        job = pod.sbatch("-p", "direct", "-N4", *words)
        pod.running(job)
        plan = json.loads(pod.out(["cat", pod.job_dir(pod.job(job)["BatchHost"], job) + "/plan.json"]))
        pod.run(["scancel", str(job)])
        pod.until(lambda: not pod.patches(), 60, pod.patches)
        return len(plan["groups"][0]["rings"]), set(plan["groups"][0]["steps"])
    demand = "--ocs-demand=" + pod.path("demand.json")
    both = steps("--ocs-rings=stock")
    assert both[0] > 1 and both[1] == {1}, both
    assert steps("--ocs-rings=permuted") != both
    assert steps(demand) == both and steps(demand, "--ocs-rings=permuted")[1] != {1}
    message = pod.refused("-p", "direct", "-N4", "--ocs-rings=Stock")
    assert "--ocs-rings=Stock is unknown" in message, message


@pytest.mark.parametrize("nodes, demand, says", [
    (4, "{}", "neither an allreduce group nor mp bytes"),
    (4, {"allreduce": [{"members": [0, 1], "bytes": -1}]}, "bytes of allreduce group 0"),
    (4, "{\"allreduce\":[{\"members\":[0,1],\"bytes\":Infinity}]}", "bytes of allreduce group 0"),
    (4, {"mp": [[0, 1], [1, 0]]}, "mp is not a list of 4 rows"),
    (4, {"mp": [[0, 1, 2]] * 2}, "row 0 of mp"),
    (4, {"allreduce": [{"members": [0, 4], "bytes": 1}]}, "server number from 0 to 3"),
    (4, {"allreduce": [{"members": [0, 0], "bytes": 1}]}, "member 1 of allreduce group 0")])
def test_demand_refused_at_submit(pod, nodes, demand, says):
    """In one line that says what and where, and not three times in the prolog."""
    pod.write("bad.json", demand if isinstance(demand, str) else json.dumps(demand))
    message = pod.refused("-p", "direct", "-N%d" % nodes, "--ocs-demand=" + pod.path("bad.json"))
    assert says in message, message


def test_demand_that_no_plan_can_serve(pod):
    """It is held with the planner's sentence, not started again and again."""
    pod.write("demand.json", json.dumps({"allreduce": [{"members": [0, 3], "bytes": 1000}]}))
    job = pod.sbatch("-p", "direct", "-N2-3", "--ocs-demand=" + pod.path("demand.json"))
    pod.until(lambda: "attempt 3 of 3, held" in pod.job(job)["Reason"].replace("_", " "), 90,
              lambda: pod.job(job))
    assert pod.job(job)["Priority"] == "0" and "member" in pod.job(job)["AdminComment"]
    pod.run(["scancel", str(job)])


def made_of(plan, size=16):
    """The patches that realise the circuits of a plan."""
    found = set()
    for circuit in plan["circuits"]:
        a, b = (int(plan["nodes"][circuit[end][0]][1:]) + 1 for end in ("a", "b"))
        switch = "direct-%d" % circuit["ocs"]
        found |= {(switch, a, size + b), (switch, b, size + a)}
    return found


def test_a_port_fails_under_a_running_job(pod):
    job = pod.sbatch("-p", "direct", "-N4")
    other = pod.sbatch("-p", "direct", "-N2")
    pod.running(job)
    pod.running(other)
    node = pod.job(job)["BatchHost"]
    plan = json.loads(pod.out(["cat", pod.job_dir(node, job) + "/plan.json"]))
    assert plan["revision"] == 1
    beside = pod.patches() - made_of(plan)
    assert beside and len(beside) + len(made_of(plan)) == len(pod.patches())
    # The first circuit's light is lost on its way; TL1 does not tell at which end.
    circuit = plan["circuits"][0]
    ends = [circuit["a"], circuit["b"]]
    ports = [int(plan["nodes"][server][1:]) + 1 for server, _ in ends]
    names = ["direct-%d:%d" % (circuit["ocs"], port) for port in ports]
    for _ in range(2):
        pod.ocsctl("reconcile")     # ocsd has seen it lit
    log = pod.path("emulator.log")
    with open(log) as handle:
        before = len(handle.readlines())
    pod.emulator("port", "direct-%d" % circuit["ocs"], str(16 + ports[0]), "fail")
    reply = pod.ocsctl("apply", str(job), "--node", node, "--after", "1")
    repaired = reply["plan"]
    assert repaired["revision"] == 2
    used = [c[end] for c in repaired["circuits"] for end in "ab"]
    assert ends[0] not in used and ends[1] not in used
    assert pod.patches() == made_of(repaired) | beside
    # Nothing of the other job was touched, not even for a moment.
    touched = {(line["switch"], line["in"], line["out"]) for line in
               map(json.loads, open(log).readlines()[before:])
               if line["event"] in ("make", "break")}
    assert touched and not touched & beside
    assert pod.state(job) == "RUNNING" and pod.state(other) == "RUNNING"
    told = pod.out(["ocsctl", "explain", str(job), "--fabric", pod.yaml])
    assert "plan:     revision 2, " in told and "section:  direct\n" in told and "(-)" not in told
    # A later job is planned without the ports.
    pod.cancel_all()
    later = pod.sbatch("-p", "direct", "-N6")
    pod.running(later)
    plan = json.loads(pod.out(["cat", pod.job_dir(pod.job(later)["BatchHost"], later) +
                               "/plan.json"]))
    used = [c[end] for c in plan["circuits"] for end in "ab"]
    for port in ports:
        assert [plan["nodes"].index("d%d" % (port - 1)), ends[0][1]] not in used
    assert pod.patches() == made_of(plan)
    pod.emulator("port", "direct-%d" % circuit["ocs"], str(16 + ports[0]), "good")
    for name in names:
        pod.ocsctl("resume", "port", name)


def test_a_job_that_no_plan_can_help(pod):
    job = pod.sbatch("-p", "direct", "-N3")
    pod.running(job)
    node = pod.job(job)["BatchHost"]
    names = ["direct-%d:%d" % (interface, int(node[1:]) + 1) for interface in range(4)]
    try:
        for name in names:
            pod.ocsctl("fail", "port", name, "--reason", "no light")
        comment = pod.until(lambda: "cannot be repaired" in pod.job(job).get("AdminComment", "")
                            and pod.job(job)["AdminComment"], 30, "the job to be told")
        assert any(name in comment for name in names), comment
        # It keeps its nodes and what is left of its circuits, and ocsd says what it is.
        assert pod.state(job) == "RUNNING"
        assert pod.patches()
        assert pod.ocsctl("show", "job", str(job))["jobs"][0]["state"] == "degraded"
        # Others are planned elsewhere.
        other = pod.sbatch("-p", "direct", "-N2")
        pod.running(other)
    finally:
        for name in names:
            pod.ocsctl("resume", "port", name)


def test_look_ahead(make_cluster):
    """The next job's circuits are made on the dark port set while the first job runs; when
    it leaves, only the 1x2 switches move."""
    cluster = make_cluster(
        cubes=1, direct=4,
        more_switches=[("ahead-[0-3]", 3700, ""), ("flip-[0-3]", 3750, "    moves: true\n")],
        direct_yaml="""    look_ahead:
      ports: {switch: "ahead-{interface}", port: server+1}
      select: {switch: "flip-{interface}", port: 3*server+1}
""")

    def patches(prefix):
        return {p for p in cluster.patches() if p[0].startswith(prefix)}

    def made():
        with open(cluster.path("emulator.log")) as log:
            return sum('"event":"make"' in line and '"ahead-' in line for line in log)
    try:
        first = cluster.sbatch("-p", "direct", "-N4")
        cluster.running(first)
        near = patches("direct-")
        assert near and not patches("ahead-")
        second = cluster.sbatch("-p", "direct", "-N4")
        cluster.ocsctl("prepare", str(second), "d[0-3]")
        cluster.until(lambda: len(patches("ahead-")) == len(near), 30, "the next job's circuits")
        assert patches("direct-") == near
        assert cluster.state(first) == "RUNNING" and cluster.state(second) == "PENDING"
        ahead, count = patches("ahead-"), made()
        cluster.run(["scancel", str(first)])
        cluster.running(second)
        assert patches("ahead-") == ahead and made() == count
        cluster.until(lambda: not patches("direct-"), 30, "the first job's circuits to go")
        node = cluster.job(second)["BatchHost"]
        plan = json.loads(cluster.out(["cat", cluster.job_dir(node, second) + "/plan.json"]))
        assert {("ahead" + switch[len("direct"):], a, b)
                for switch, a, b in made_of(plan)} == ahead
        cluster.run(["scancel", str(second)])
        cluster.until(lambda: not patches("ahead-"), 30, "dark switches")
        # without a bank of 1x2 switches nobody starts
        cluster.ocsctl("drain", "switch", "flip-0", "--reason", "dust")
        third = cluster.sbatch("-p", "direct", "-N4")
        cluster.until(lambda: "drained" in cluster.job(third)["Reason"], 20, lambda: cluster.job(third))
        assert cluster.state(third) == "PENDING" and cluster.job(third)["Restarts"] == "0"
        cluster.ocsctl("resume", "switch", "flip-0")
        cluster.running(third)
    finally:
        cluster.stop()


def test_rail_ports_are_allocated_with_the_nodes(make_cluster):
    cluster = make_cluster(cubes=1, rails=4)
    try:
        job = cluster.sbatch("-p", "rails", "-N2", script="env | grep ^SLURM_OCS; sleep 300")
        cluster.running(job)
        nodes = cluster.out(["scontrol", "show", "hostnames",
                             cluster.job(job)["NodeList"]]).split()
        ports = [port for port in cluster.ocsctl("show", "port")["ports"]
                 if port.get("owner") == job]
        assert {(port["switch"], port["port"]) for port in ports} == {
            ("rail-%d" % rail, int(node[1:]) + 1) for rail in range(8) for node in nodes}
        cluster.run(["scancel", str(job)])
        cluster.until(lambda: not any(port.get("owner") for port in
                                      cluster.ocsctl("show", "port")["ports"]), 30,
                      "the ports to be free")
    finally:
        cluster.stop()
