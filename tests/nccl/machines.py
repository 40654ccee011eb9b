# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Servers that do not exist: what is in them, and their hwloc description.

A server has processors, on each of them PCIe switches, on each of these GPUs and NICs."""


class Device:
    def __init__(self, kind, busid, numa, switch):
        self.kind, self.busid, self.numa, self.switch = kind, busid, numa, switch
        self.names = []         # RDMA devices, one for a NIC


class Machine:
    """GPUs and ports are spread over SOCKETS; FUNCTIONS ports share a NIC.  SWAPPED: the kernel
    numbered the RDMA devices in another order than that of the bus."""

    def __init__(self, gpus, ports, sockets=1, nvlink=False, functions=1, mbps=400000, swapped=False):
        self.sockets, self.nvlink, self.mbps = sockets, nvlink, mbps
        self.devices, self.ports = [], []
        nics = ports // functions
        for socket in range(sockets):
            mine = [range(n * socket // sockets, n * (socket + 1) // sockets) for n in (gpus, nics)]
            switches = max(len(mine[1]), 1)
            for s in range(switches):
                base = 0x10 + 0x60 * socket + 0x50 // switches * s
                at = base + 2
                for _ in share(mine[0], s, switches):
                    self.devices.append(Device("gpu", "0000:%02x:00.0" % at, socket, base))
                    at += 1
                for _ in share(mine[1], s, switches):
                    for f in range(functions):
                        self.devices.append(Device("nic", "0000:%02x:00.%d" % (at, f), socket, base))
                    at += 1
        self.ports = [d for d in self.devices if d.kind == "nic"]
        for i, port in enumerate(self.ports):
            index = i ^ 1 if swapped and i ^ 1 < len(self.ports) else i
            port.names = ["mlx5_%d" % index]
        self.gpus = [d for d in self.devices if d.kind == "gpu"]

    def port(self, name):
        return next(d for d in self.ports if name in d.names)

    def interfaces(self):
        """RDMA devices in the order of the bus: interface i of ocs.yaml is the i-th."""
        return [d.names[0] for d in self.ports]

    def cpumap(self, socket):
        return "%08x" % (0xff << 8 * socket)

    def description(self):
        """What lstopo would write."""
        out = Lines()
        sets = 'cpuset="%s" complete_cpuset="%s" nodeset="0x%x" complete_nodeset="0x%x"'
        every = hex((1 << 8 * self.sockets) - 1)
        nodes = (1 << self.sockets) - 1
        out.add('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">')
        out.add('<topology version="2.0">')
        out.add('<object type="Machine" os_index="0" %s allowed_cpuset="%s" allowed_nodeset="0x%x" gp_index="%d">'
                % (sets % (every, every, nodes, nodes), every, nodes, out.gp()))
        out.add('<info name="Architecture" value="x86_64"/>')
        for socket in range(self.sockets):
            self.socket(out, socket, sets)
        out.add("</object></topology>")
        return "\n".join(out.list) + "\n"

    def socket(self, out, socket, sets):
        cpus = hex(0xff << 8 * socket)
        here = sets % (cpus, cpus, 1 << socket, 1 << socket)
        out.add('<object type="Package" os_index="%d" %s gp_index="%d">' % (socket, here, out.gp()))
        for name, value in (("CPUVendor", "GenuineIntel"), ("CPUFamilyNumber", "6"), ("CPUModelNumber", "143")):
            out.add('<info name="%s" value="%s"/>' % (name, value))
        out.add('<object type="NUMANode" os_index="%d" %s gp_index="%d" local_memory="8589934592"/>'
                % (socket, here, out.gp()))
        for pu in range(8 * socket, 8 * socket + 8):
            one = sets % (hex(1 << pu), hex(1 << pu), 1 << socket, 1 << socket)
            out.add('<object type="Core" os_index="%d" %s gp_index="%d"><object type="PU" os_index="%d" '
                    '%s gp_index="%d"/></object>' % (pu, one, out.gp(), pu, one, out.gp()))
        self.pci(out, socket)
        out.add("</object>")

    def pci(self, out, socket):
        first = 0x0f + 0x60 * socket
        bridge = ('<object type="Bridge" gp_index="%d" bridge_type="1-1" depth="%d" bridge_pci="0000:[%02x-%02x]" '
                  'pci_busid="%s" pci_type="0604 [1000:c030] [1000:a064] b0" pci_link_speed="63.015385">')
        out.add('<object type="Bridge" gp_index="%d" bridge_type="0-1" depth="0" bridge_pci="0000:[%02x-%02x]">'
                % (out.gp(), first, first + 0x5f))
        for n, base in enumerate(sorted({d.switch for d in self.devices if d.numa == socket})):
            out.add(bridge % (out.gp(), 1, base, base + 9, "0000:%02x:%02x.0" % (first, n + 1)))
            out.add(bridge % (out.gp(), 2, base + 1, base + 9, "0000:%02x:00.0" % base))
            buses = {}
            for d in self.devices:
                if d.switch == base:
                    buses.setdefault(d.busid[5:7], []).append(d)
            for i, bus in enumerate(sorted(buses)):
                out.add(bridge % (out.gp(), 3, int(bus, 16), int(bus, 16), "0000:%02x:%02x.0" % (base + 1, i)))
                for d in buses[bus]:
                    self.device(out, d)
                out.add("</object>")
            out.add("</object></object>")
        out.add("</object>")

    def device(self, out, d):
        kind = "0302 [10de:2330] [10de:16c1] a1" if d.kind == "gpu" else "0207 [15b3:1021] [15b3:0041] 00"
        out.add('<object type="PCIDev" gp_index="%d" pci_busid="%s" pci_type="%s" pci_link_speed="63.015385">'
                % (out.gp(), d.busid, kind))
        for name in d.names:
            out.add('<object type="OSDev" gp_index="%d" name="%s" osdev_type="3"/>' % (out.gp(), name))
        out.add("</object>")


class Lines:
    def __init__(self):
        self.list, self.count = [], 0

    def add(self, line):
        self.list.append(line)

    def gp(self):
        self.count += 1
        return self.count


def share(things, part, parts):
    return things[len(things) * part // parts:len(things) * (part + 1) // parts]
