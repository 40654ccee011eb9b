# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A cluster whose direct servers have network namespaces of their own: each slurmd runs
in one, with an interface to slurmctld and `degree` interfaces ocs0, ocs1 ... that the
emulator's data plane joins, circuit by circuit."""

import json
import os
import pathlib
import socket
import sys

from cluster import Cluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "net"))
from netlab import IP_RECVTTL, inside    # noqa: E402

PORT = 7000


class NetCluster(Cluster):
    """Interface p of direct server s is `ocsP` there and `s<s>p<p>` on the switches' side."""

    backend = "auto"
    # Every port in two functions, as a NIC may split it: `ocsPf` has a MAC of its own and
    # carries what the host forwards.
    split = False

    @property
    def hosts(self):
        """The nodes with networks of their own."""
        return self.direct_nodes

    @property
    def ports(self):
        """Interfaces of each on switches."""
        return self.degree

    def address(self, server):
        return "10.192.0.%d" % (server + 1)

    def ocs_yaml(self):
        names = ", ".join("{name: ocs%d%s}" % (p, ", forward: ocs%df" % p if self.split else "")
                          for p in range(self.degree))
        return super().ocs_yaml().replace(
            "    directed: false\n",
            "    directed: false\n    interfaces: [%s]\n"
            "    forwarding: {backend: %s, address: 10.192.0.0/16}\n" % (names, self.backend))

    def slurm_conf(self):
        text = super().slurm_conf().replace("SlurmctldHost=head(127.0.0.1)",
                                            "SlurmctldHost=head(10.77.0.1)")
        text = text.replace("CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n", "")
        lines = []
        for line in text.splitlines():
            name = line.partition(" ")[0].removeprefix("NodeName=")
            if name in self.hosts:
                line = line.replace("NodeAddr=127.0.0.1",
                                    "NodeAddr=10.77.0.%d" % (int(name[1:]) + 2))
            lines.append(line)
        return "\n".join(lines) + "\n"

    def configure(self):
        super().configure()
        self.write("hosts", "127.0.0.1 localhost\n10.77.0.1 head\n")
        self.write("plane", "".join("%s %d s%dp%d\n" % (*self.fibre(s, p), s, p)
                                    for s in range(len(self.hosts)) for p in range(self.ports)))

    def fibre(self, server, port):
        """The switch and its port that interface PORT of SERVER is on."""
        return "direct-%d" % port, server + 1

    def start_namespace(self):
        super().start_namespace()
        self.run("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6;"
                 " ip link add ctl type bridge && ip address add 10.77.0.1/24 dev ctl &&"
                 " ip link set ctl up && ip link set lo up")
        for server in range(len(self.hosts)):
            self.make_host(server)

    def make_host(self, server):
        """The host's network as it is after a boot."""
        name = self.hosts[server]
        lines = ["ip netns add %s" % name,
                 "N='ip netns exec %s'" % name,
                 "$N sh -c 'echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6;"
                 " echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo up;"
                 " echo 0 > /proc/sys/net/ipv4/conf/all/send_redirects'",
                 "ip link add ctl%d type veth peer name eth0 netns %s" % (server, name),
                 "ip link set ctl%d master ctl up" % server,
                 "ip -n %s address add 10.77.0.%d/24 dev eth0" % (name, server + 2),
                 "ip -n %s link set eth0 up" % name]
        for port in range(self.ports):
            lines.append("ip link add s%dp%d type veth peer name ocs%d netns %s address "
                         "02:aa:00:00:%02x:%02x" % (server, port, port, name, server, port))
            lines.append("ip link set s%dp%d up" % (server, port))
            if self.split:
                lines.append("ip -n %s link add link ocs%d name ocs%df address "
                             "06:aa:00:00:%02x:%02x type macvlan mode private" % (
                                 name, port, port, server, port))
        self.run("set -e\n" + "\n".join(lines))

    def reboot(self, server):
        """The host dies and comes back; its slurmd has to be started."""
        name = self.hosts[server]
        self.stop_slurmd(name)
        self.run("ip netns pids %s | xargs -r kill -9; rm -rf /run/ocs/%s" % (name, name))
        self.run(["ip", "netns", "del", name])
        # the far ends go when the last process in there has
        self.until(lambda: self.run("! ip link show ctl%d" % server,
                                    check=False).returncode == 0, 20, "the host to be gone")
        self.make_host(server)

    def start_emulator(self):
        self.spawn(["ocs-emulator", "--fabric", self.yaml, "--delay", str(self.delay_ms),
                    "--log", self.path("emulator.log"), "--data-plane", self.path("plane"),
                    "--control", "unix:" + self.path("emulator.sock")],
                   self.path("emulator.err"))
        self.until(lambda: os.path.exists(self.path("emulator.sock")), 10, "the emulator")

    def start_slurmd(self, name):
        conf = self.path("etc-slurmd", "slurm.conf")
        command = ["slurmd", "-D", "-N", name, "-f", conf]
        if name in self.hosts:
            command = ["ip", "netns", "exec", name] + command
        self.spawn(command, self.path("log", "slurmd.%s.err" % name),
                   env={"SLURM_CONF": conf, "SLURMD_NODENAME": name})

    # -- looking at the hosts --------------------------------------------------

    def inside(self, name):
        return inside(name, "/proc/%d/root/run/netns" % self.init_pid)

    def host(self, name, *words, check=True):
        return self.run(["ip", "netns", "exec", name] + list(words), check=check).stdout

    def snapshot(self, name):
        """All that forwarding could leave behind on a host."""
        text = self.host(name, "sh", "-c", """
            split="%s"; ip rule; ip route show table all; ip neigh show nud permanent; ip -o address |
            sed 's/valid_lft.*//'; for i in $(seq 0 %d); do for d in ocs$i ${split:+ocs${i}f}; do
            tc qdisc show dev $d clsact; tc filter show dev $d ingress
            ip -o link show $d | grep -o '<[^>]*>'; done; done
            grep -r . /proc/sys/net/ipv4/conf --include=forwarding --include=rp_filter \
                --include=send_redirects --include=accept_redirects
            cat /proc/sys/net/ipv4/ip_forward; ls /run/ocs/%s 2>/dev/null |
            grep -vx forward.lock || true""" % (
                "yes" if self.split else "", self.ports - 1, name))
        # numbers that the kernel makes anew each time
        return sorted(line.partition(" not_in_hw")[0] for line in text.splitlines())

    def listen(self):
        """A UDP socket on every host."""
        sockets = []
        for name in self.hosts:
            with self.inside(name):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
            sock.bind(("0.0.0.0", PORT))
            sockets.append(sock)
        return sockets

    def sent(self):
        """{(server, port): frames sent}, as the switches' side counts."""
        result = {}
        for line in self.out(["cat", "/proc/net/dev"]).splitlines()[2:]:
            name, numbers = line.split(":")
            name = name.strip()
            if name[0] == "s" and "p" in name:
                server, port = name[1:].split("p")
                result[int(server), int(port)] = int(numbers.split()[1])
        return result

    def plan(self, job):
        node = self.job(job)["BatchHost"]
        return self.job_dir(node, job) + "/plan.json"

    def paths(self, job):
        """How `ocsctl forward` says that the packets of the job go:
        {(node, node): ([servers of the fabric], [ports])}."""
        told = self.run(["ocsctl", "forward", self.plan(job), "--json"]).stdout
        return routes(told)


class RailsCluster(NetCluster):
    """The same for servers on rails: `ocsP` is device P, port P % nic_ports of its rail."""

    @property
    def hosts(self):
        return self.rail_nodes

    @property
    def ports(self):
        return self.nrails * self.nic_ports

    def configure(self):
        super().configure()
        self.write("hosts", "127.0.0.1 localhost\n10.77.0.1 head\n" + "".join(
            "10.77.0.%d %s\n" % (server + 2, name) for server, name in enumerate(self.hosts)))

    def fibre(self, server, port):
        return "rail-%d" % (port // self.nic_ports), server * self.nic_ports + port % self.nic_ports + 1

    def ocs_yaml(self):
        names = ", ".join("{name: ocs%d}" % p for p in range(self.ports))
        return super().ocs_yaml().replace(
            '    ports: {switch: "rail-{interface}"',
            "    interfaces: [%s]\n    tcp: {address: 10.192.0.0/16, management: eth0}\n"
            '    ports: {switch: "rail-{interface}"' % names).replace("timeouts: {", "timeouts: {routes: 5s, ")

    def frames(self):
        """{(server, device): {what happened to a frame that the host sent: how often}}"""
        shown = {}
        for rail in range(self.nrails):
            shown.update(json.loads(self.emulator("frames", "rail-%d" % rail)))
        return {(s, p): shown[self.fibre(s, p)[0]][str(self.fibre(s, p)[1])]
                for s in range(len(self.hosts)) for p in range(self.ports)}


class Controller:
    """Names the topologies of a job, with its key, as the job's controller does."""

    def __init__(self, cluster, job):
        fields = cluster.job(job)
        first = cluster.out(["scontrol", "show", "hostnames", fields["NodeList"]]).split()[0]
        self.cluster, self.job, self.seq = cluster, job, 0
        self.key = cluster.out(["cat", cluster.job_dir(first, job) + "/rails.key"]).strip()
        self.epoch = int(cluster.out(["cat", cluster.job_dir(first, job) + "/epoch"]))
        self.connect()

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(self.cluster.path("ocsd.sock"))
        self.file = self.socket.makefile("rw")

    def send(self, *topologies):
        """Asks for a topology of each rail."""
        self.seq += 1
        rails = [{"rail": r, "topo": text} for r, text in enumerate(topologies)]
        self.file.write(json.dumps({"op": "topo", "id": self.seq, "job": self.job, "epoch": self.epoch,
                                    "key": self.key, "seq": self.seq, "rails": rails}) + "\n")
        self.file.flush()

    def topo(self, *topologies):
        """The same; the reply."""
        self.send(*topologies)
        for line in self.file:
            said = json.loads(line)
            if said.get("id") == self.seq:
                return said
        raise OSError("ocsd has closed the connection")


def routes(text):
    told = json.loads(text)
    names = [host["node"] for host in told["hosts"]]
    number = [int(name[1:]) for name in names]
    return {(number[row["src"]], number[row["dst"]]):
            ([number[s] for s in row["path"]], row["ports"]) for row in told["paths"]}
