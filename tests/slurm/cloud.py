# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A cluster whose nodes are State=CLOUD and never come: no slurmd at all.  Jobs are
allocated, stay configuring, and leave at once when they are cancelled, so that
thousands of nodes and jobs fit on a small machine."""

import os
import re

from cluster import Cluster

NEVER = {
    "SuspendProgram": "/bin/true", "ResumeProgram": "/bin/true",
    "SuspendTime": "60000", "ResumeTimeout": "60000", "ResumeRate": "0",
    "SlurmctldDebug": "info",
}


class Cloud(Cluster):
    def __init__(self, *arguments, config=None, **options):
        super().__init__(*arguments, config={**NEVER, **(config or {})}, **options)

    def slurm_conf(self):
        lines = super().slurm_conf().splitlines()
        lines = [line for line in lines if not line.startswith("NodeName=")]
        part = next(i for i, line in enumerate(lines) if line.startswith("PartitionName="))
        lines.insert(part, "NodeName=n[0-%d] CPUs=%d RealMemory=1000 State=CLOUD" % (
            len(self.torus_nodes) - 1, max(4, self.tile[0] * self.tile[1] * self.tile[2])))
        return "\n".join(lines) + "\n"

    def start(self):
        self.configure()
        self.start_namespace()
        if self.parts:
            self.start_emulator()
            self.start_ocsd()
        self.start_slurmctld()
        return self

    def start_slurmctld(self):
        super().start_slurmctld()
        with open(self.path("slurmctld.pid")) as handle:
            self.pid = handle.read().strip()

    def memory(self):
        """Resident MB of slurmctld."""
        text = self.out(["cat", "/proc/%s/status" % self.pid])
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1e3

    def cpu_all(self):
        """Seconds that all threads of slurmctld have computed."""
        fields = self.out(["cat", "/proc/%s/stat" % self.pid]).rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu(self, thread):
        """Milliseconds that the thread of slurmctld with this name has computed: what
        else runs on the machine does not count."""
        return int(self.out("grep -lx %s /proc/%s/task/*/comm | while read f; do "
                            "cut -d ' ' -f 1 ${f%%comm}schedstat; done" % (
                                thread, self.pid)).split()[0]) / 1e6

    def count(self, states):
        return len(self.out(["squeue", "-h", "-r", "-t", states, "-o", "%A"]).split())
