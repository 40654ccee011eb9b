# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What a cluster of the tests is made of: its folders, ocs.yaml, slurm.conf and what goes with them."""

import os
import secrets

SWITCHES = """  - name: {name}
    {driver}
    address: "127.0.0.1:{{{port}+index}}"
    size: {size}
    ports: duplex
"""

# What a switch speaks: the keys that go with it.
LOGIN = "\n    credentials: {dir}/etc/ocs.cred"
LANGUAGES = {
    "tl1": "driver: tl1\n    dialect: polatis" + LOGIN,
    "calient": "driver: tl1\n    dialect: calient" + LOGIN,
    "glimmerglass": "driver: tl1\n    dialect: glimmerglass" + LOGIN,
    "scpi": "driver: scpi",
    "netconf": "driver: netconf\n    dialect: polatis\n    known_hosts: {dir}/etc/known_hosts" + LOGIN,
}


class Description:
    """`cubes` cubes of edge^3 XPUs, `tile` XPUs a node, one emulated switch per
    dimension and face position; optionally direct, rail and plain servers."""

    def __init__(self, directory, stage, slurm, cubes=4, edge=4, tile=(2, 2, 1),
                 direct=0, degree=4, rails=0, plain=0, delay_ms=20, config=None,
                 parts=("select", "topology"), spank=(), remote=False, direct_yaml="", torus_yaml="",
                 more_yaml="", more_switches=(), netconf=False, languages=None,
                 partitions=(), node_words=None, more_files=None,
                 nrails=8, nic_ports=1, rail_xpus=0, regions=0, region_servers=4, region_degree=3,
                 region_xpus=2, region_yaml=""):
        self.dir = os.path.abspath(directory)
        self.stage = os.path.abspath(stage)
        self.slurm = os.path.abspath(slurm)
        self.cubes, self.edge, self.tile = cubes, edge, tile
        self.degree, self.delay_ms = degree, delay_ms
        self.config = config or {}
        self.parts = parts
        self.spank = spank
        self.direct_yaml = direct_yaml      # more keys of the direct fabric
        self.torus_yaml = torus_yaml        # and of the cubes
        self.more_switches = more_switches  # (names, first TCP port, more keys)
        self.more_yaml = more_yaml          # more parts of ocs.yaml
        self.netconf = netconf      # the switches speak it instead of TL1
        self.languages = languages  # of the switches of x, y and z (names in LANGUAGES)
        self.partitions = partitions        # further ones: what follows PartitionName=
        self.node_words = node_words or {}  # what slurm.conf says of single nodes besides
        self.more_files = more_files or {}  # beside slurm.conf: name and text
        self.remote = remote        # "munge" or "key": how slurmctld and the nodes are known
        self.cube_nodes = edge ** 3 // (tile[0] * tile[1] * tile[2])
        self.torus_nodes = ["n%d" % i for i in range(cubes * self.cube_nodes)]
        self.direct_nodes = ["d%d" % i for i in range(direct)]
        self.nrails, self.nic_ports, self.rail_xpus = nrails, nic_ports, rail_xpus
        self.rail_nodes = ["r%d" % i for i in range(rails)]
        self.region_nodes = ["m%d" % i for i in range(regions * region_servers)]
        self.regions, self.region_servers = regions, region_servers
        self.region_degree, self.region_xpus, self.region_yaml = region_degree, region_xpus, region_yaml
        self.plain_nodes = ["p%d" % i for i in range(plain)]
        self.nodes = (self.torus_nodes + self.direct_nodes + self.rail_nodes +
                      self.region_nodes + self.plain_nodes)

    # -- paths ---------------------------------------------------------------

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    @property
    def yaml(self):
        return self.path("etc", "ocs.yaml")

    def job_dir(self, node, job):
        return "/run/ocs/%s/%s" % (node, job)

    # -- configuration -------------------------------------------------------

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as handle:
            handle.write(text)
        os.chmod(path, mode)

    def switch_size(self):
        # A duplex port is one of 1..size; each cube needs two at every switch.
        return max(16, 2 * self.cubes)

    def switches(self, **values):
        language = values.pop("language", "netconf" if self.netconf else "tl1")
        driver = LANGUAGES[language].format(dir=self.dir)
        return SWITCHES.format(driver=driver, **values)

    def ocs_yaml(self):
        last = self.edge - 1
        text = """version: 1
ocsd:
  socket: unix:{dir}/ocsd.sock
  state: {dir}/ocsd
{tcp}{key}  admins: [root]
timeouts: {{switch: 2s, retry: 1s, poll: 5s, prolog: 2m, ocsd_down: 20s}}
switches:
""".format(dir=self.dir, tcp="  listen: 127.0.0.1:6820\n  address: 127.0.0.1:6820\n"
           if self.remote else "", key="  key: %s\n" % self.path("etc", "ocsd.key")
           if self.remote == "key" else "")
        if self.languages:
            for i, language in enumerate(self.languages):
                text += self.switches(name="ocs-%s-[0-%d]-[0-%d]" % ("xyz"[i], last, last),
                                      port=3100 + 100 * i, size=self.switch_size(),
                                      language=language)
        else:
            text += self.switches(name="ocs-[x,y,z]-[0-%d]-[0-%d]" % (last, last),
                                  port=3100, size=self.switch_size())
        if self.direct_nodes:
            text += self.switches(name="direct-[0-%d]" % (self.degree - 1), port=3500,
                                  size=max(16, len(self.direct_nodes)))
        if self.rail_nodes:
            text += self.switches(name="rail-[0-%d]" % (self.nrails - 1), port=3600,
                                  size=max(16, self.nic_ports * len(self.rail_nodes)))
        if self.region_nodes:
            text += self.switches(name="region-[0-%d]" % (self.regions - 1), port=3700,
                                  size=max(16, self.region_servers * self.region_degree))
        for names, port, keys in self.more_switches:
            text += self.switches(name=names, port=port, size=16) + keys
        text += """fabrics:
  - name: pod
    kind: torus
    partitions: [{parts}]
    cube: {e}x{e}x{e}
    tile: {t[0]}x{t[1]}x{t[2]}
    tpu_environment: true
{more}    cubes:
""".format(more=self.torus_yaml, e=self.edge, t=self.tile,
           parts=", ".join(["tpu"] + [words.split()[0] for words in self.partitions]))
        for cube in range(self.cubes):
            first = cube * self.cube_nodes
            text += "      - {name: c%d, nodes: \"n[%d-%d]\"}\n" % (
                cube, first, first + self.cube_nodes - 1)
        text += """    ports:
      switch: "ocs-{dim}-{a}-{b}"
      port: 2*cube+sign+1
"""
        if self.direct_nodes:
            text += """  - name: direct
    kind: direct
    partitions: [direct]
    nodes: d[0-%d]
    degree: %d
    directed: false
    ports: {switch: "direct-{interface}", port: server+1}
""" % (len(self.direct_nodes) - 1, self.degree) + self.direct_yaml
        if self.rail_nodes:
            text += """  - name: rails
    kind: rails
    partitions: [rails]
    nodes: r[0-%d]
    rails: %d
%s%s    ports: {switch: "rail-{interface}", port: server*nic_ports + nic_port + 1}
""" % (len(self.rail_nodes) - 1, self.nrails,
       "    ports_per_nic: %d\n" % self.nic_ports if self.nic_ports > 1 else "",
       "    xpus: %d\n" % self.rail_xpus if self.rail_xpus else "")
        if self.region_nodes:
            text += """  - name: moe
    kind: region
    partitions: [moe]
    nodes: m[0-%d]
    region_servers: %d
    degree: %d
    packet_nics: 1
    xpus: %d
    ports: {switch: "region-{region}", port: server %% region_servers * degree + interface + 1}
""" % (len(self.region_nodes) - 1, self.region_servers, self.region_degree, self.region_xpus) + self.region_yaml
        return text + self.more_yaml

    def slurm_conf(self):
        settings = {
            "ClusterName": "ocs",
            "SlurmctldHost": "head(127.0.0.1)",
            "AuthType": "auth/slurm",
            "CredType": "cred/slurm",
            # A requeued job waits until the credentials of its last run expire.
            "AuthInfo": "cred_expire=10",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "PluginDir": "%s/lib/slurm:%s/lib/slurm" % (self.stage, self.slurm),
            "PlugStackConfig": self.path("etc", "plugstack.conf"),
            "StateSaveLocation": self.path("state"),
            "SlurmctldLogFile": self.path("slurmctld.log"),
            "SlurmctldPidFile": self.path("slurmctld.pid"),
            "SlurmdLogFile": self.path("log", "slurmd.%n.log"),
            "SlurmdPidFile": self.path("log", "slurmd.%n.pid"),
            "SlurmdSpoolDir": self.path("spool", "%n"),
            "SlurmdParameters": "config_overrides",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "MpiDefault": "none",
            "ReturnToService": "2",
            "PrologFlags": "Alloc,DeferBatch",
            "PrologEpilogTimeout": "180",
            "SelectTypeParameters": "CR_Core",
            "SchedulerParameters": "bf_interval=2,sched_interval=5",
            "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
            "SlurmdTimeout": "300",
            "KillWait": "2",
            "MinJobAge": "300",
            "InactiveLimit": "0",
            "MaxArraySize": "2000",
            "ScronParameters": "enable",
            "DebugFlags": "NO_CONF_HASH",
            "SlurmctldDebug": "verbose",
            "SlurmdDebug": "info",
        }
        if "select" in self.parts:
            settings["SelectType"] = "select/cons_tres_ocs"
        if "topology" in self.parts:
            settings["TopologyPlugin"] = "topology/ocs"
        if self.parts:
            settings["JobSubmitPlugins"] = "ocs"
            settings["CliFilterPlugins"] = "ocs"
        settings.update({name: value.replace("{stage}", self.stage)
                         for name, value in self.config.items()})
        text = "".join("%s=%s\n" % item for item in settings.items() if item[1])
        cpus = max(4, self.tile[0] * self.tile[1] * self.tile[2])
        for number, name in enumerate(self.nodes):
            text += ("NodeName=%s NodeHostname=head NodeAddr=127.0.0.1 Port=%d CPUs=%d "
                     "RealMemory=1000 %s\n" % (name, 17000 + number, cpus,
                                               self.node_words.get(name, "")))
        default = " Default=YES"
        for part, nodes in (("tpu", self.torus_nodes), ("direct", self.direct_nodes),
                            ("rails", self.rail_nodes), ("moe", self.region_nodes), ("plain", self.plain_nodes)):
            if nodes:
                text += "PartitionName=%s Nodes=%s[0-%d]%s\n" % (
                    part, nodes[0][0], len(nodes) - 1, default)
                default = ""
        text += "".join("PartitionName=%s\n" % words for words in self.partitions)
        return text

    def configure(self):
        for name in ("etc", "etc-slurmd", "state", "log", "spool", "ocsd", "out"):
            os.makedirs(self.path(name), exist_ok=True)
        for name in self.nodes:
            os.makedirs(self.path("spool", name), exist_ok=True)
        os.chmod(self.dir, 0o755)
        os.chmod(self.path("out"), 0o777)
        self.write("hosts", "127.0.0.1 localhost head\n::1 localhost\n")
        key = secrets.token_bytes(1024)
        conf = self.slurm_conf()
        for etc in ("etc", "etc-slurmd"):
            with open(self.path(etc, "slurm.key"), "wb") as handle:
                handle.write(key)
            os.chmod(self.path(etc, "slurm.key"), 0o600)
            self.write(etc + "/ocs.yaml", self.ocs_yaml())
            self.write(etc + "/cgroup.conf", "CgroupPlugin=disabled\n")
            self.write(etc + "/ocs-prolog.conf", "dir=/run/ocs/%n\n")
            for name, content in self.more_files.items():
                self.write(etc + "/" + name, content.replace("{dir}", self.dir))
        self.write("etc/slurm.conf", conf)
        # The slurmds of one host race for the SACK socket: they do without.
        self.write("etc-slurmd/slurm.conf", conf.replace("AuthInfo=", "AuthInfo=disable_sack,"))
        self.write("etc/plugstack.conf",
                   "required %s/lib/slurm/spank_ocs.so dir=/run/ocs/%%n conf=%s "
                   "helper=%s/libexec/slurm-ocs/ocs-node%s\n" % (
                       self.stage, self.yaml, self.stage,
                       "".join(" " + word for word in self.spank)) if self.parts else "")
        self.write("etc/ocs.cred", "user=admin\npassword=root\n", 0o600)
