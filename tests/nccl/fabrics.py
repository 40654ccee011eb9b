# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Jobs on direct fabrics: plans by ocsctl, files by ocs-node, read by the judge."""

import json
import os
import shutil
import subprocess
import tempfile

import judge

BUILD = os.environ["OCS_BUILD_DIR"]
OCSCTL = os.path.join(BUILD, "src/ocsctl/ocsctl")
NODE = os.path.join(BUILD, "src/node/ocs-node")


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr))
    return done.stdout


def noted(warnings):
    """(Does it say what the graph file costs, the other lines)."""
    lines = warnings.splitlines(True)
    return any(line.startswith("note: NCCL_GRAPH_FILE is set") for line in lines), \
        "".join(line for line in lines if not line.startswith("note: "))


def namespace(interfaces):
    """A command before another one, which then has a network of its own with INTERFACES."""
    commands = "".join("link add ens%d type veth peer name far%d\\nlink set ens%d up\\n" % (i, i, i) for i in range(interfaces))
    return ["unshare", "-n", "sh", "-c", "printf '" + commands + "' | ip -batch - && exec \"$@\"", "sh"]


def namespaces_work():
    return subprocess.run(namespace(1) + ["true"], capture_output=True, check=False).returncode == 0


class Job:
    """The files of a job on SERVERS servers like MACHINE."""

    def __init__(self, machine, servers, directed=False, subnets=False, nccl="", plan=(), reverse=False):
        self.machine, self.count, self.directed = machine, servers, directed
        self.names = machine.interfaces()
        if reverse:     # interface 0 is the last on the bus
            self.names.reverse()
        self.folder = tempfile.mkdtemp()
        self.within = namespace(len(self.names)) if subnets else []
        try:
            self.describe(subnets, nccl)
            self.plan = json.loads(call(OCSCTL, "plan", "--json", "--fabric", self.path("ocs.yaml"), "--servers",
                                        str(servers), *plan))
            self.plan["nodes"] = ["d%d" % i for i in range(servers)]
            with open(self.path("reply.json"), "w") as file:
                json.dump({"id": 1, "ok": True, "plan": self.plan}, file)
            self.prepare()
            self.servers = [self.server(name) for name in self.plan["nodes"]]
        finally:
            shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def describe(self, subnets, nccl):
        with open(self.path("machine.xml"), "w") as file:
            file.write(self.machine.description())
        degree = len(self.names)
        with open(self.path("ocs.yaml"), "w") as file:
            file.write("version: 1\nocsd:\n  listen: 127.0.0.1:6822\nswitches:\n  - name: s[0-%d]\n    driver: tl1\n"
                       "    dialect: polatis\n    address: 10.20.0.{10 + index}:3082\n    size: %d\n"
                       "    credentials: /etc/slurm/ocs.cred\n"
                       "nccl:\n  hwloc_xml: %s\n  management: eth0\n%s"
                       "fabrics:\n  - name: direct\n    kind: direct\n    nodes: d[0-%d]\n    degree: %d\n"
                       "    xpus: %d\n    directed: %s\n%s    interfaces:\n%s"
                       "    ports:\n      switch: s{interface}\n      port: server + 1\n"
                       % (max(degree - 1, 1), self.count + 4, self.path("machine.xml"), nccl, self.count - 1, degree,
                          len(self.machine.gpus), "true" if self.directed else "false",
                          "    subnets: 10.128.0.0/16\n" if subnets else "",
                          "".join("      - {name: ens%d, rdma: \"%s:1\", speed: %d}\n" % (i, name, self.machine.mbps)
                                  for i, name in enumerate(self.names))))

    def prepare(self):
        """One host plays all servers: each takes the addresses of the one before away."""
        each = 'for n in %s; do "$0" prepare --fabric %s --dir %s/$n --job 7 --epoch 1 --node $n --nodes %s ' \
               '--reply %s || exit 1; done'
        call(*self.within, "sh", "-c", each % (" ".join(self.plan["nodes"]), self.path("ocs.yaml"), self.folder,
                                               ",".join(self.plan["nodes"]), self.path("reply.json")), NODE)

    def server(self, name):
        folder = self.path(name)
        text = {}
        for file in ("topo.xml", "graph.xml", "env", "subnets", "warnings"):
            path = os.path.join(folder, file)
            if os.path.exists(path):
                with open(path) as opened:
                    text[file] = opened.read()
        env = dict(line.split("=", 1) for line in text.get("env", "").splitlines())
        addresses = {}
        for line in text.get("subnets", "").splitlines():
            device, address = line.split()
            addresses[self.names[int(device[3:])]] = address
        server = judge.Server(name, self.machine, {"topo": text.get("topo.xml"), "graph": text.get("graph.xml")},
                              env, addresses)
        server.note, server.warnings = noted(text.get("warnings", ""))
        return server

    def circuits(self):
        found = {}
        for c in self.plan["circuits"]:
            a, b = [(c[end][0], self.names[c[end][1]]) for end in "ab"]
            found[a] = b
            if not self.directed:
                found[b] = a
        return found

    def held(self, server):
        """Interfaces of SERVER that hold circuits."""
        return sorted({c[end][1] for c in self.plan["circuits"] for end in "ab" if c[end][0] == server})

    def judge(self, release, used=None, known=True):
        """KNOWN: the environment of the job names the release, so that spank_ocs can compare."""
        kept = [dict(s.env) for s in self.servers]
        for s in self.servers:
            since = s.env.get("SLURM_OCS_GRAPH_NCCL")
            if since and (not known or judge.Release(release).number < judge.Release(since).number):
                s.env.pop("NCCL_GRAPH_FILE", None)
        verdict = judge.judge(self.servers, self.circuits(), judge.Release(release), used)
        for s, env in zip(self.servers, kept):
            s.env = env
        return verdict


def checked(mutants):
    """Each of MUTANTS with None if `ocsctl nccl-check` is right about it, else what it says."""
    folder = tempfile.mkdtemp()
    try:
        paths = []
        for i, (_, _, text) in enumerate(mutants):
            paths.append(os.path.join(folder, "%d.xml" % i))
            with open(paths[-1], "w", encoding="utf-8", newline="") as file:
                file.write(text)
        said = ""
        for i in range(0, len(paths), 64):
            done = subprocess.run([OCSCTL, "nccl-check"] + paths[i:i + 64], capture_output=True, text=True,
                                  timeout=300, check=False)
            said += done.stdout
        errors = {}
        for line in said.splitlines():
            path, _, rest = line.partition(":")
            if ": error: " in line:
                errors.setdefault(path, line)
        for mutant, path in zip(mutants, paths):
            refused = path in errors
            yield mutant, None if refused == mutant[1] else errors.get(path, "no error")
    finally:
        shutil.rmtree(folder)
