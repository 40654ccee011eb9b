# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A cluster whose servers of a region have network namespaces of their own: eth0 to slurmctld, `packets` to each other,
and optical NICs ocs0, ocs1 ... that the emulator's data plane joins, circuit by circuit.  Each NIC but eth0 has the
rate of a token bucket."""

import os
import pathlib
import sys

from cluster import Cluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "net"))
from moelab import nic_lines      # noqa: E402


def nics_yaml(degree, speed=200):
    """The key `interfaces`, with the addresses that tests/net/moelab.py gives to optical NICs."""
    return "    interfaces: [%s]\n" % ", ".join(
        '{name: ocs%d, speed: %d, address: "10.78.{server + 1}.%d/16"}' % (p, speed, p + 1) for p in range(degree))


class RegionCluster(Cluster):
    """REGIONS of SERVERS with DEGREE optical NICs; MBIT each.  With APART each server has a /tmp of its own, in which of
    the common one there is what the cluster itself needs.  TCP: jobs get the addresses of the NICs
    from ocs-node."""

    def __init__(self, *where, servers=6, degree=2, mbit=40, apart=False, tcp=False, regions=1, **options):
        if tcp:
            options["region_yaml"] = "    tcp: true\n    interfaces: [%s]\n" % ", ".join(
                '{name: ocs%d, address: "10.%d.0.{server + 1}/16", speed: %d}' % (p, 80 + p, mbit) for p in range(degree))
        super().__init__(*where, regions=regions, region_servers=servers, region_degree=degree, **options)
        self.mbit, self.apart, self.tcp = mbit, apart, tcp

    def _tmp_apart(self, name, command):
        """COMMAND in the mount namespace that `ip netns exec` makes, with another /tmp."""
        own = self.path("tmp." + name)
        lines = ["set -e", "mkdir -p " + own, "mount -t tmpfs -o mode=1777 tmpfs " + own]
        for top in sorted({"/".join(str(place).split("/")[:3]) for place in (self.dir, self.stage, self.slurm)
                           if str(place).startswith("/tmp/")}):
            lines += ["mkdir -p %s/%s" % (own, top.split("/")[2]), "mount --rbind %s %s/%s" % (top, own, top.split("/")[2])]
        lines += ["mount --rbind %s /tmp" % own, 'cd /tmp; exec "$@"']
        return ["ip", "netns", "exec", name, "sh", "-c", "\n".join(lines), "sh"] + command

    def slurm_conf(self):
        text = super().slurm_conf().replace("SlurmctldHost=head(127.0.0.1)", "SlurmctldHost=head(10.76.0.1)")
        lines = []
        for line in text.replace("CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n", "").splitlines():
            name = line.partition(" ")[0].removeprefix("NodeName=")
            if name in self.region_nodes:
                line = line.replace("NodeAddr=127.0.0.1", "NodeAddr=10.76.0.%d" % (int(name[1:]) + 2))
            lines.append(line)
        return "\n".join(lines) + "\n"

    def configure(self):
        super().configure()
        self.write("hosts", "127.0.0.1 localhost\n10.76.0.1 head\n")
        self.write("plane", "".join(
            "region-%d %d s%dp%d\n" % (s // self.region_servers, s % self.region_servers * self.region_degree + p + 1, s, p)
            for s in range(len(self.region_nodes)) for p in range(self.region_degree)))

    def start_namespace(self):
        super().start_namespace()
        self.run("set -e; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6\n"
                 "ip link add ctl type bridge; ip address add 10.76.0.1/24 dev ctl; ip link set ctl up\n"
                 "ip link add lan type bridge; ip link set lan up; ip link set lo up")
        for server, name in enumerate(self.region_nodes):
            self._host_make(server, name)

    def _host_make(self, server, name):
        shape = "root tbf rate %dmbit burst 16kb latency 1s" % self.mbit
        inside = ["addr add 10.76.0.%d/24 dev eth0" % (server + 2), "link set eth0 up", "link set lo up",
                  "addr add 10.77.0.%d/24 dev packets" % (server + 1), "link set packets up"]
        inside += [] if self.tcp else nic_lines(server, self.region_degree)
        lines = ["ip netns add " + name,
                 "ip link add ctl%d type veth peer name eth0 netns %s" % (server, name),
                 "ip link set ctl%d master ctl up" % server,
                 "ip link add lan%d type veth peer name packets netns %s" % (server, name),
                 "ip link set lan%d master lan up" % server, "tc qdisc add dev lan%d %s" % (server, shape)]
        for p in range(self.region_degree):
            lines += ["ip link add s%dp%d type veth peer name ocs%d netns %s" % (server, p, p, name),
                      "ip link set s%dp%d up" % (server, p)]
        lines.append("ip netns exec %s sh -c 'echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore;"
                     " echo 2 > /proc/sys/net/ipv4/conf/all/arp_announce'" % name)
        lines.append("ip -n %s -batch - <<'EOF'\n%s\nEOF" % (name, "\n".join(inside)))
        lines += ["tc -n %s qdisc add dev %s %s" % (name, device, shape)
                  for device in ["packets"] + ["ocs%d" % p for p in range(self.region_degree)]]
        self.run("set -e\n" + "\n".join(lines))

    def host(self, name, *words):
        return self.out(["ip", "netns", "exec", name] + list(words))

    def snapshot(self, name):
        """All that ocs-node could leave behind on a host."""
        text = self.host(name, "sh", "-c", """
            ip rule; ip route show table all; ip neigh show nud permanent; ip -o address | sed 's/valid_lft.*//'
            for i in $(seq 0 %d); do ip -o link show ocs$i | grep -o '<[^>]*>'; done
            grep -r . /proc/sys/net/ipv4/conf --include=rp_filter --include=send_redirects --include=accept_redirects
            ls /run/ocs/%s 2>/dev/null | grep -vx forward.lock || true""" % (self.region_degree - 1, name))
        return sorted(text.splitlines())

    def start_emulator(self):
        self.spawn(["ocs-emulator", "--fabric", self.yaml, "--delay", str(self.delay_ms),
                    "--log", self.path("emulator.log"), "--data-plane", self.path("plane"),
                    "--control", "unix:" + self.path("emulator.sock")], self.path("emulator.err"))
        self.until(lambda: os.path.exists(self.path("emulator.sock")), 10, "the emulator")

    def start_slurmd(self, name):
        conf = self.path("etc-slurmd", "slurm.conf")
        command = ["slurmd", "-D", "-N", name, "-f", conf]
        if name in self.region_nodes:
            command = self._tmp_apart(name, command) if self.apart else ["ip", "netns", "exec", name] + command
        self.spawn(command, self.path("log", "slurmd.%s.err" % name),
                   env={"SLURM_CONF": conf, "SLURMD_NODENAME": name})
