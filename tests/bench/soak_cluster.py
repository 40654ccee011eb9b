# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The cluster of soak_slurm.py: cubes, servers on rails and a region under one slurmctld.  Servers have network namespaces
of their own, and their optical NICs are joined by the emulator's data plane.  /tmp and /dev/shm belong to the cluster, so
that whatever is left there was left by it."""

import json
import os
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "slurm"), os.path.join(TESTS, "net"), HERE]

from netcluster import NetCluster       # noqa: E402

RAILS, NICS, SERVERS, DEGREE = 8, 2, 6, 2


class SoakCluster(NetCluster):
    def __init__(self, *where):
        interfaces = ", ".join("{name: ocs%d, speed: 100, address: \"10.%d.0.{server + 1}/16\"}" % (p, 80 + p)
                               for p in range(DEGREE))
        super().__init__(
            *where, cubes=4, edge=2, tile=(2, 2, 2), rails=RAILS, nrails=2, nic_ports=2, rail_xpus=2,
            regions=1, region_servers=SERVERS, region_degree=DEGREE, region_xpus=1, delay_ms=5,
            region_yaml="    tcp: true\n    interfaces: [%s]\n" % interfaces, spank=("prolog_timeout=60",),
            more_yaml="limits: {topologies_per_second: 500}\n",
            config={"AuthInfo": "cred_expire=5", "MinJobAge": "36000", "MaxJobCount": "20000",
                    "SchedulerParameters": "bf_interval=2,sched_interval=2,batch_sched_delay=0"})

    @property
    def hosts(self):
        return self.rail_nodes + self.region_nodes

    @property
    def ports(self):
        return 4

    def fibre(self, server, port):
        if server < RAILS:
            return "rail-%d" % (port // 2), 2 * server + port % 2 + 1
        return "region-0", (server - RAILS) * DEGREE + port + 1

    def count(self, server):
        """Optical NICs of a server."""
        return 4 if server < RAILS else DEGREE

    def ocs_yaml(self):
        names = ", ".join("{name: ocs%d}" % p for p in range(4))
        return super().ocs_yaml().replace(
            '    ports: {switch: "rail-{interface}"',
            "    interfaces: [%s]\n    tcp: {address: 10.192.0.0/16, management: eth0}\n"
            '    ports: {switch: "rail-{interface}"' % names)

    def slurm_conf(self):
        text = super().slurm_conf()
        for server, name in enumerate(self.hosts):
            old = "NodeName=%s NodeHostname=head NodeAddr=" % name
            at = text.index(old) + len(old)
            text = text[:at] + "10.77.0.%d" % (server + 2) + text[text.index(" ", at):]
        return text

    def configure(self):
        super().configure()
        self.write("hosts", "127.0.0.1 localhost\n10.77.0.1 head\n" + "".join(
            "10.77.0.%d %s\n" % (server + 2, name) for server, name in enumerate(self.hosts)))
        self.write("plane", "".join("%s %d s%dp%d\n" % (*self.fibre(s, p), s, p) for s in range(len(self.hosts))
                                    for p in range(self.count(s))))
        os.makedirs(self.path("runs"), exist_ok=True)
        os.chmod(self.path("runs"), 0o777)
        # beside the cluster: other users may not reach this tree
        for source in (os.path.join(HERE, "soak_rank.py"), os.path.join(TESTS, "unit/rails/rails_peers.py"),
                       os.path.join(os.path.dirname(TESTS), "src/moe/job/ocs_moe.py")):
            with open(source, encoding="utf-8") as handle:
                self.write(os.path.basename(source), handle.read())

    def start_namespace(self):
        super().start_namespace()

    def make_host(self, server):
        name, region = self.hosts[server], server - RAILS
        if server == 0:
            self.run("mount -t tmpfs -o mode=1777 tmpfs /tmp; mount -t tmpfs -o mode=1777 tmpfs /dev/shm;"
                     " ip link add lan type bridge; ip link set lan up")
        lines = ["set -e", "ip netns add " + name,
                 "ip netns exec %s sh -c 'for i in all default; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done;"
                 " echo 0 >/proc/sys/net/ipv4/conf/all/send_redirects; ip link set lo up'" % name,
                 "ip link add ctl%d type veth peer name eth0 netns %s" % (server, name),
                 "ip link set ctl%d master ctl up" % server,
                 "ip -n %s address add 10.77.0.%d/24 dev eth0; ip -n %s link set eth0 up" % (name, server + 2, name)]
        for port in range(self.count(server)):
            lines.append("ip link add s%dp%d type veth peer name ocs%d netns %s address 02:aa:00:00:%02x:%02x" % (
                server, port, port, name, server, port))
            lines.append("ip link set s%dp%d up" % (server, port))
        if region >= 0:
            lines += ["ip link add lan%d type veth peer name packets netns %s; ip link set lan%d master lan up" % (
                          server, name, server),
                      "ip -n %s address add 10.79.0.%d/24 dev packets; ip -n %s link set packets up" % (name, region + 1, name),
                      "ip netns exec %s sh -c 'echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore;"
                      " echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce'" % name]
        self.run("\n".join(lines))

    def ask(self, command):
        """What the emulator says to COMMAND."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(60)
            line.connect(self.path("emulator.sock"))
            line.sendall((command + "\n").encode())
            with line.makefile() as file:
                return json.loads(file.readline())

    def lost(self):
        """{(node, device): frames that met a port in change}"""
        tables = {name: ports for switch in ("rail-0", "rail-1", "region-0")
                  for name, ports in self.ask("frames " + switch).items()}
        return {(self.hosts[s], p): tables[self.fibre(s, p)[0]][str(self.fibre(s, p)[1])]["changing"]
                for s in range(len(self.hosts)) for p in range(self.count(s))}
