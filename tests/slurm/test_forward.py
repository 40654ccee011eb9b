# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Hosts that forward for each other, from the prolog to the epilog of real jobs: every
slurmd runs in a network namespace of its own, and packets cross emulated circuits."""

import json
import time

import pytest

from conftest import places
from netcluster import PORT, NetCluster

SERVERS = 6

# Runs on every host of a job: answers with the TTL of what arrives, and in its turn asks
# all others.  Folder and addresses are arguments.
ALL_PAIRS = r"""
import os, socket, sys, threading, time
folder, hosts = sys.argv[1], sys.argv[2].split(",")
me = hosts.index([l.split()[0] for l in open(os.environ["SLURM_OCS_DIR"] + "/addresses")
                  if l.split()[1] == os.environ["SLURMD_NODENAME"]][0])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.IPPROTO_IP, 12, 1)
server.bind(("0.0.0.0", 7001))
def answer():
    while True:
        data, extra, _, peer = server.recvmsg(100, 100)
        server.sendto(b"%d" % int.from_bytes(extra[0][2], "little"), peer)
threading.Thread(target=answer, daemon=True).start()
def step(name):
    open(os.path.join(folder, "%s.%d" % (name, me)), "w").close()
def wait(name, number):
    end = time.monotonic() + 60
    while not os.path.exists(os.path.join(folder, "%s.%d" % (name, number))):
        if time.monotonic() > end:
            sys.exit("host %d waits for %s of %d" % (me, name, number))
        time.sleep(0.01)
step("ready")
for number in range(len(hosts)):
    wait("ready", number)
if me:
    wait("asked", me - 1)
for number, host in enumerate(hosts):
    if number == me:
        continue
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(5)
    client.sendto(b"x", (host, 7001))
    data, peer = client.recvfrom(100)
    print("pair", me, number, data.decode(), client.getsockname()[1] and peer[0], flush=True)
step("asked")
wait("asked", len(hosts) - 1)
"""


@pytest.fixture(scope="module", params=["auto", "routes"])
def net(request, tmp_path_factory):
    stage, slurm = places()
    cluster = NetCluster(tmp_path_factory.mktemp("net"), stage, slurm, cubes=1, edge=2,
                         tile=(2, 2, 2), direct=SERVERS, spank=("prolog_timeout=60",))
    cluster.backend = request.param
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def bare(net):
    """How the hosts are without a job; so they must be afterwards."""
    before = {name: net.snapshot(name) for name in net.direct_nodes}
    yield before
    net.cancel_all()
    check_bare(net, before)


def check_bare(net, before, seconds=30):
    def same():
        return all(net.snapshot(name) == before[name] for name in net.direct_nodes)
    def differ():
        lines = []
        for name in net.direct_nodes:
            now = net.snapshot(name)
            lines += ["%s has %s" % (name, line) for line in now if line not in before[name]]
            lines += ["%s lacks %s" % (name, line) for line in before[name] if line not in now]
        return "\n".join(["hosts as they were:"] + lines)
    net.until(same, seconds, differ)
    net.until(lambda: "ocs-node" not in net.out("ps -eo args | grep -v grep"), 20,
              "the watchers to end")


def ttl(net, path):
    """What a packet arrives with: the kernel's routing counts down, bpf does not."""
    return 64 - (len(path) - 2) if net.backend == "routes" else 64


def check_all_pairs(net, job):
    """Every pair, one packet: it leaves by the ports of its path and by no others."""
    planned = net.paths(job)
    sockets = net.listen()
    servers = sorted({src for src, _ in planned})
    assert len(planned) == len(servers) * (len(servers) - 1)
    try:
        for (src, dst), (path, ports) in planned.items():
            before = net.sent()
            text = b"%d>%d" % (src, dst)
            sockets[src].sendto(text, (net.address(dst), PORT))
            sockets[dst].settimeout(5)
            data, extra, _, sender = sockets[dst].recvmsg(100, 100)
            after = net.sent()
            left = {port: after[port] - before[port] for port in after
                    if after[port] != before[port]}
            assert data == text and sender[0] == net.address(src)
            assert left == {pair: 1 for pair in zip(path, ports)}, (src, dst)
            assert int.from_bytes(extra[0][2], "little") == ttl(net, path), (src, dst)
    finally:
        for sock in sockets:
            sock.close()


def test_all_pairs_in_a_job(net, bare):
    """A job's own processes reach each other on the planned paths, and nothing is left."""
    net.write("pairs.py", ALL_PAIRS)
    folder = net.path("out", "pairs")
    net.run(["mkdir", "-p", folder])
    hosts = ",".join(net.address(s) for s in range(SERVERS))
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS,
                     script="srun -N%d --ntasks-per-node=1 /usr/bin/python3 %s %s %s\n"
                            "touch %s/done; sleep 300" % (
                                SERVERS, net.path("pairs.py"), folder, hosts, folder))
    net.until(lambda: net.job(job).get("JobState") == "RUNNING" and
              net.run(["test", "-e", folder + "/ready.0"], check=False).returncode == 0 or
              net.state(job) not in ("PENDING", "CONFIGURING", "RUNNING"), 60, "the job")
    net.until(lambda: net.run(["test", "-e", folder + "/done"], check=False).returncode == 0,
              90, lambda: "all pairs: %s" % net.out(["cat", net.path("out", "%d.out" % job)]))
    text = net.out(["cat", net.path("out", "%d.out" % job)])
    planned = net.paths(job)
    asked = {}
    for line in text.splitlines():
        if line.startswith("pair "):
            _, src, dst, arrived, peer = line.split()
            asked[int(src), int(dst)] = int(arrived)
            assert peer == net.address(int(dst))
    assert asked == {pair: ttl(net, path) for pair, (path, _) in planned.items()}, text
    # nothing else has used the interfaces: each request and each answer went as planned
    expected = {}
    for path, ports in planned.values():
        for hop in zip(path, ports):
            expected[hop] = expected.get(hop, 0) + 2
    assert {hop: count for hop, count in net.sent().items() if count} == expected
    check_all_pairs(net, job)
    net.run(["scancel", str(job)])
    net.wait(job, "CANCELLED")
    check_bare(net, bare)


def test_what_is_not_ours_stays(net, bare):
    """Routes, rules, neighbours, filters, addresses and settings of others."""
    net.host("d1", "sh", "-c", """
        set -e
        ip link set ocs0 up; ip link set ocs1 up
        ip address add 10.192.0.2/32 dev ocs1
        ip address add 172.16.0.1/24 dev ocs0
        ip rule add pref 100 from 172.16.0.1 lookup 100
        ip route add 172.17.0.0/24 dev ocs0 table 100
        ip route add 10.192.0.3/32 dev ocs0 table 100
        ip neigh add 10.192.0.99 lladdr 02:00:00:00:00:99 dev ocs0 nud permanent
        tc qdisc add dev ocs0 clsact
        tc filter add dev ocs0 ingress protocol arp pref 10 u32 match u32 0 0 flowid :1
        echo 1 > /proc/sys/net/ipv4/conf/ocs2/rp_filter""")
    before = net.snapshot("d1")
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    during = net.snapshot("d1")
    check_all_pairs(net, job)
    net.cancel_all()
    net.until(lambda: net.snapshot("d1") == before, 20,
              lambda: "what was there: %s" % (set(before) ^ set(net.snapshot("d1"))))
    assert all(line in during for line in before
               if "rp_filter" not in line and "redirects" not in line and "forwarding" not in line
               and not line.startswith("<"))
    net.host("d1", "sh", "-c", """
        tc qdisc del dev ocs0 clsact; ip rule del pref 100; ip route flush table 100
        ip neigh del 10.192.0.99 dev ocs0; ip address del 10.192.0.2/32 dev ocs1
        ip address del 172.16.0.1/24 dev ocs0; ip link set ocs0 down; ip link set ocs1 down
        echo 0 > /proc/sys/net/ipv4/conf/ocs2/rp_filter""")


def test_two_jobs(net, bare):
    """Each has its own hosts; the end of one does not touch the other."""
    first = net.sbatch("-p", "direct", "-N4")
    second = net.sbatch("-p", "direct", "-N2")
    net.running(first)
    net.running(second)
    check_all_pairs(net, first)
    net.run(["scancel", str(second)])
    net.wait(second, "CANCELLED")
    check_all_pairs(net, first)


def test_cancelled_during_the_prolog(net, bare):
    for number, pause in enumerate((0, 0.1, 0.2, 0.3, 0.4, 0.6)):
        job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
        net.until(lambda: net.state(job) not in ("PENDING",), 30, "the job to start")
        time.sleep(pause)
        net.run(["scancel", str(job)])
        net.wait(job, "CANCELLED")
        check_bare(net, bare)


# Kills the ocs-node of a host as soon as it has begun to change the host.
KILLER = """
while ! grep -q '"settled":false' /run/ocs/%(host)s/forward.json 2>/dev/null; do
    [ -e %(stop)s ] && exit 1
done
for pid in $(ip netns pids %(host)s); do
    grep -q ocs-node /proc/$pid/comm 2>/dev/null && kill -9 $pid
done
touch %(done)s
"""


def test_ocs_node_killed_midway(net, bare):
    """The prolog runs it again, over whatever it has left."""
    hit = 0
    for attempt in range(4):
        stop, done = net.path("out", "stop%d" % attempt), net.path("out", "hit%d" % attempt)
        net.run("nohup bash -c '%s' >/dev/null 2>&1 &" % (
            (KILLER % {"host": "d2", "stop": stop, "done": done}).replace("'", "'\\''")))
        job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
        net.running(job)
        net.run(["touch", stop])
        hit += net.run(["test", "-e", done], check=False).returncode == 0
        check_all_pairs(net, job)
        net.run(["scancel", str(job)])
        net.wait(job, "CANCELLED")
        check_bare(net, bare)
    assert hit, "the killer was too late every time"


def test_slurmd_dies_with_a_job(net, bare):
    """Nobody runs the epilog; the slurmd that comes back takes away what is left."""
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS, "--no-requeue")
    net.running(job)
    net.stop_slurmd("d2")
    net.run("for pid in $(ip netns pids d2); do grep -q slurmstepd /proc/$pid/comm &&"
            " kill -9 $pid; done; true")
    net.run(["scontrol", "update", "NodeName=d2", "State=DOWN", "Reason=test"])
    net.wait(job, ("NODE_FAIL", "FAILED", "CANCELLED"))
    net.until(lambda: net.run(["ocsctl", "show", "job", str(job), "--fabric", net.yaml],
                              check=False).returncode, 40, "ocsd to know that it is over")
    assert "forward.json" in net.snapshot("d2") and str(job) in net.snapshot("d2")
    # Slurm asks for an epilog while it takes the node for one that will answer.
    net.until(lambda: "node:d2 RPC:REQUEST_TERMINATE_JOB" in net.out(["cat", net.path("slurmctld.log")]), 60,
              "slurmctld to ask no more")
    net.start_slurmd("d2")
    net.run(["scontrol", "update", "NodeName=d2", "State=RESUME"], check=False)
    net.wait_idle()
    check_bare(net, bare)
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    check_all_pairs(net, job)


def test_slurmd_restarts_under_a_job(net, bare):
    """What a living job has stays."""
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    during = net.snapshot("d2")
    net.stop_slurmd("d2")
    net.start_slurmd("d2")
    net.until(lambda: "d2 " in net.out("sinfo -h -N -t alloc -o '%N ' | sort -u"), 30, "d2")
    time.sleep(1)
    assert net.snapshot("d2") == during
    check_all_pairs(net, job)


def test_left_over_of_another_job(net, bare):
    """An epilog that never ran, noticed by the next job's prolog."""
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    kept = net.out(["cat", "/run/ocs/d4/forward.json"])
    net.cancel_all()
    state = json.loads(kept)
    for thing in state["things"]:
        if thing["tool"] in ("ip", "tc") and thing["do"]:
            net.host("d4", thing["tool"], *thing["do"].split(), check=False)
    state["job"] = 4000000
    net.run("mkdir -p /run/ocs/d4; cat > /run/ocs/d4/forward.json", stdin=json.dumps(state))
    assert net.snapshot("d4") != bare["d4"]
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    check_all_pairs(net, job)


def test_host_reboots(net, bare):
    """The network is made anew, as by a boot, under a job: the next one finds it so."""
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS, "--no-requeue")
    net.running(job)
    net.reboot(2)
    net.run(["scontrol", "update", "NodeName=d2", "State=DOWN", "Reason=boot"])
    net.wait(job, ("NODE_FAIL", "FAILED", "CANCELLED"))
    net.start_slurmd("d2")
    net.run(["scontrol", "update", "NodeName=d2", "State=RESUME"], check=False)
    net.wait_idle()
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    check_all_pairs(net, job)


def test_a_host_that_cannot(net, bare):
    """The job is requeued with a comment that names the host, then held; no node is
    drained, and when the host is mended the job runs."""
    ran = net.path("out", "ran-without-routes")
    net.host("d3", "ip", "link", "set", "ocs1", "name", "gone1")
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS, "--requeue",
                     script="touch %s; sleep 300" % ran)
    def held():
        fields = net.job(job)
        return (fields.get("JobState") == "PENDING" and "held" in fields.get("AdminComment", "")
                and fields)
    fields = net.until(held, 120, lambda: "a held job: %s" % net.job(job))
    assert "host d3 cannot forward" in fields["AdminComment"]
    assert "no interface ocs1" in fields["AdminComment"]
    assert net.run(["test", "-e", ran], check=False).returncode != 0
    states = net.out(["sinfo", "-h", "-N", "-o", "%N %T"])
    assert "drain" not in states and "down" not in states
    net.host("d3", "ip", "link", "set", "gone1", "name", "ocs1")
    net.run(["scontrol", "release", str(job)])
    net.running(job, 90)
    check_all_pairs(net, job)


def fail_a_circuit(net, job):
    """A port under the job goes dark; its (server, interface), once every host has the
    new plan."""
    plan = json.loads(net.out(["cat", net.plan(job)]))
    spare = [c for c in plan["circuits"] if c.get("group", 0) < 0]
    circuit = (spare or plan["circuits"])[-1]
    server = int(plan["nodes"][circuit["a"][0]][1:])
    net.run(["ocsctl", "fail", "port", "direct-%d:%d" % (circuit["a"][1], server + 1),
             "--reason", "test", "--fabric", net.yaml])
    def followed():
        notes = [json.loads(net.out(["cat", "/run/ocs/%s/forward.json" % name]))
                 for name in net.direct_nodes]
        return all(note["revision"] > plan["revision"] and note["settled"] for note in notes)
    net.until(followed, 90, lambda: "the new plan on all hosts: %s" % net.ocsctl(
        "show", "job", str(job)))
    net.until(lambda: json.loads(net.out(["cat", net.plan(job)]))["revision"] >
              plan["revision"], 10, "the new plan.json")
    return server, circuit["a"][1]


def mend(net, port):
    net.run(["ocsctl", "resume", "port", "direct-%d:%d" % (port[1], port[0] + 1),
             "--fabric", net.yaml])


def test_a_circuit_fails_under_a_job(net, bare):
    """ocsd repairs the plan, the hosts follow it by difference, and traffic returns."""
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    old = net.paths(job)
    things = len(json.loads(net.out(["cat", "/run/ocs/d0/forward.json"]))["things"])
    for name in net.direct_nodes:
        net.run("nohup ip netns exec %s ip monitor route rule neigh > %s 2>&1 &" % (
            name, net.path("out", "monitor." + name)))
    time.sleep(0.5)
    port = fail_a_circuit(net, job)
    try:
        new = net.paths(job)
        assert new != old
        assert not any(port in zip(path, ports) for path, ports in new.values())
        check_all_pairs(net, job)
        for name in net.direct_nodes:
            said = net.out(["cat", net.path("out", "monitor." + name)])
            assert "iif" not in said, "rules of %s were touched:\n%s" % (name, said)
            assert len(said.splitlines()) < things, said
        assert net.state(job) == "RUNNING"
        net.cancel_all()
    finally:
        net.run("pkill -x ip; true")
        mend(net, port)
    check_bare(net, bare)


def test_ocsd_restarts_under_a_job(net, bare):
    """It has forgotten who told what; the hosts tell it again, and follow a repair."""
    job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
    net.running(job)
    net.kill("ocsd")
    time.sleep(1)
    net.start_ocsd()
    for switch in range(net.degree):
        net.wait_for_switch("direct-%d" % switch)
    check_all_pairs(net, job)
    port = fail_a_circuit(net, job)
    try:
        check_all_pairs(net, job)
        net.cancel_all()
    finally:
        mend(net, port)
    check_bare(net, bare)


def test_the_scripts_do_the_same(tmp_path):
    """Sites with prolog=no: share/slurm-ocs/prolog and epilog."""
    stage, slurm = places()
    scripts = "{stage}/share/slurm-ocs/"
    net = NetCluster(tmp_path, stage, slurm, cubes=1, edge=2, tile=(2, 2, 2), direct=4,
                     spank=("prolog=no",),
                     config={"Prolog": scripts + "prolog", "Epilog": scripts + "epilog"})
    try:
        net.start()
        before = {name: net.snapshot(name) for name in net.direct_nodes}
        job = net.sbatch("-p", "direct", "-N4")
        net.running(job)
        check_all_pairs(net, job)
        net.cancel_all()
        check_bare(net, before)
        net.host("d3", "ip", "link", "set", "ocs1", "name", "gone1")
        job = net.sbatch("-p", "direct", "-N4", "--requeue")
        net.until(lambda: "host d3 cannot forward" in net.job(job).get("AdminComment", ""), 60,
                  lambda: "a comment that names the host: %s" % net.job(job))
        states = net.out(["sinfo", "-h", "-N", "-o", "%N %T"])
        assert "drain" not in states and "down" not in states
    finally:
        net.stop()


@pytest.mark.parametrize("backend", ["auto", "routes"])
def test_ports_in_two_functions(tmp_path, backend):
    """A host's own traffic on one function of a port, that of others on the other."""
    stage, slurm = places()
    net = NetCluster(tmp_path, stage, slurm, cubes=1, edge=2, tile=(2, 2, 2), direct=SERVERS)
    net.backend, net.split = backend, True
    try:
        net.start()
        before = {name: net.snapshot(name) for name in net.direct_nodes}
        job = net.sbatch("-p", "direct", "-N%d" % SERVERS)
        net.running(job)
        received = "/sys/class/net/%s/statistics/rx_packets"
        def counts(kind):
            return sum(int(net.host(name, "cat", received % ("ocs%d%s" % (p, kind))))
                       for name in net.direct_nodes for p in range(net.degree))
        at_first = counts("f")
        check_all_pairs(net, job)
        relayed = sum(len(ports) - 1 for _, ports in net.paths(job).values())
        assert relayed and counts("f") - at_first == relayed
        net.cancel_all()
        check_bare(net, before)
    finally:
        net.stop()
