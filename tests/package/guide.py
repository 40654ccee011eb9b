#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The labelled blocks of doc/administrators-guide.md, as they stand there and in their order, on Debian 13 machines:
containers with systemd as their first process, joined by a bridge.

    guide.py FOLDER                  everything; half an hour on two cores, 4 GB below FOLDER
    guide.py FOLDER list             the blocks with their numbers
    guide.py FOLDER boot NAME ...    machines: build, head, n0 to n5
    guide.py FOLDER run FIRST LAST   these blocks, on the machines that were booted
    guide.py FOLDER on NAME COMMAND  a command on a machine
    guide.py FOLDER stop             ends all machines and removes them; FOLDER/base stays for the next time

Root, iproute2, nftables and mmdebstrap; OCS_MIRROR is a mirror of Debian (default: the first that apt of this machine
uses).  Where this machine has cgroup v1, slurmd gets CgroupPlugin=disabled, as the guide says of containers.  Packages
are built from the last commit.  Not part of ./check, because it makes machines of another release of Debian.
"""

import concurrent.futures
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
GUIDE = os.path.join(TOP, "doc/administrators-guide.md")
NODES = ["n0", "n1", "n2", "n3"]
NEW = ["n4", "n5"]
MACHINES = ["build", "head"] + NODES + NEW
BRIDGE, NETWORK = "ocs-guide", "10.213.97."
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Beside a minimal Debian: what its installer adds, and what clones slurm-ocs.
INCLUDE = "systemd-sysv,dbus,iproute2,ca-certificates,git"

# Runs as the first process of the namespaces until systemd replaces it.
BOOT = r"""set -e
mount --make-rprivate /
cd {folder}/root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for device in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 dev/${{device%:*}} c 1 ${{device#*:}}; done
mknod -m 666 dev/tty c 5 0
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
hostname {name}
until [ -e sys/class/net/eth0 ]; do sleep 0.1; done
ip link set lo up
ip addr add {address}/24 dev eth0
ip link set eth0 up
ip route add default via {network}1
mkdir -p .outside
pivot_root . .outside
cd /
umount -l /.outside
rmdir /.outside
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd </dev/null >/run/console 2>&1
"""


def sh(command, **options):
    return subprocess.run(["bash", "-euc", command], check=True, **options)


def mirror():
    """The first that apt of this machine names."""
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.split()
    return os.environ.get("OCS_MIRROR") or [line for line in lines if line.rstrip("/").endswith("debian")][0]


class Machines:
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.base = os.path.join(self.folder, "base")

    def path(self, name, *rest):
        return os.path.join(self.folder, "machines", name, *rest)

    def make_base(self):
        if os.path.exists(self.base):
            return
        os.makedirs(self.folder, exist_ok=True)
        sources = os.path.join(self.folder, "base.sources")
        with open(sources, "w") as handle:
            handle.write("Types: deb deb-src\nURIs: %s\nSuites: trixie trixie-updates\nComponents: main\n"
                         "Signed-By: %s\n" % (mirror(), KEYRING))
        sh("mmdebstrap --quiet --variant=important --include=%s trixie %s.part %s && mv %s.part %s" %
           (INCLUDE, self.base, sources, self.base, self.base))

    def make_bridge(self):
        """The machines reach the mirror through this one."""
        if os.path.exists("/sys/class/net/" + BRIDGE):
            return
        sh("ip link add {0} type bridge && ip addr add {1}1/24 dev {0} && ip link set {0} up\n"
           "sysctl -n net.ipv4.ip_forward >{2}/ip_forward && sysctl -qw net.ipv4.ip_forward=1\n"
           "nft 'add table ip {0}'\n"
           "nft 'add chain ip {0} out {{ type nat hook postrouting priority 100 ; }}'\n"
           "nft 'add rule ip {0} out ip saddr {1}0/24 oifname != {0} masquerade'".format(BRIDGE, NETWORK, self.folder))

    def pid(self, name):
        """Its first process, as this machine counts; None if it does not run."""
        try:
            with open(self.path(name, "pid")) as handle:
                pid = int(handle.read())
            with open("/proc/%d/cgroup" % pid) as handle:
                return pid if "/%s-%s" % (BRIDGE, name) in handle.read() else None
        except FileNotFoundError:
            return None

    def booted(self):
        return [name for name in MACHINES if self.pid(name)]

    def cgroup(self, name):
        tree = "/sys/fs/cgroup/unified" if os.path.exists("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
        return "%s/%s-%s" % (tree, BRIDGE, name)

    def boot(self, name):
        self.make_base()
        self.make_bridge()
        folder, cgroup = self.path(name), self.cgroup(name)
        sh("mkdir -p {0}/up {0}/work {0}/root {1}\n"
           "layers=lowerdir={2},upperdir={0}/up,workdir={0}/work\n"
           "mountpoint -q {0}/root || mount -t overlay -o $layers overlay {0}/root".format(folder, cgroup, self.base))
        self.settle(name)
        script = BOOT.format(folder=folder, name=name, network=NETWORK, address=self.address(name))
        with open(self.path(name, "boot.log"), "w") as log:
            parent = subprocess.Popen(
                ["bash", "-c", "echo $$ >%s/cgroup.procs; exec unshare --mount --pid --fork --uts --ipc --net --cgroup "
                 "bash -c '%s'" % (cgroup, script.replace("'", "'\\''"))],
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.until(lambda: self.child(parent.pid), 10)
        with open(self.path(name, "pid"), "w") as handle:
            handle.write(str(self.child(parent.pid)))
        sh("ip link del {0}-{1} 2>/dev/null || true\n"
           "ip link add {0}-{1} type veth peer name eth0 netns {2}\n"
           "ip link set {0}-{1} master {0} up".format(BRIDGE, name, self.pid(name)))
        self.until(lambda: self.on(name, "systemctl is-system-running", check=False)[1].strip()
                   in ("running", "degraded"), 120)

    @staticmethod
    def address(name):
        return "%s%d" % (NETWORK, 10 + MACHINES.index(name))

    def settle(self, name):
        """What an installer asks: the name, those of the others, and how apt reaches its archive."""
        root = self.path(name, "root")
        with open(root + "/etc/hostname", "w") as handle:
            handle.write(name + "\n")
        with open(root + "/etc/hosts", "w") as handle:
            handle.write("127.0.0.1 localhost\n" + "".join(
                "%s %s\n" % (self.address(other), other) for other in MACHINES))
        if not os.path.exists(self.path(name, "up/etc/machine-id")):
            with open(root + "/etc/machine-id", "w") as handle:
                handle.write(os.urandom(16).hex() + "\n")
        shutil.copy("/etc/resolv.conf", root + "/etc/resolv.conf")

    @staticmethod
    def child(pid):
        with open("/proc/%d/task/%d/children" % (pid, pid)) as handle:
            children = handle.read().split()
        return int(children[0]) if children else None

    @staticmethod
    def until(condition, seconds):
        end = time.time() + seconds
        while not condition():
            if time.time() > end:
                raise TimeoutError(condition)
            time.sleep(0.2)

    def on(self, name, command, check=True):
        """As root's login shell there; status and output."""
        enter = ["nsenter", "--target", str(self.pid(name)), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
                 "--root", "--wd"]
        env = ["env", "-i", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=dumb",
               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        shell = self.cgroup(name) + "/shell"
        os.makedirs(shell, exist_ok=True)
        done = subprocess.run(["bash", "-c", 'echo $$ >%s/cgroup.procs; exec "$@"' % shell, "-"] + enter + env +
                              ["bash", "-euc", "cd; " + command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if check and done.returncode:
            raise RuntimeError("%s: %s: status %d\n%s" % (name, command, done.returncode, done.stdout))
        return done.returncode, done.stdout

    def copy(self, source, target, names):
        """Files of one machine to others: /etc/slurm/ocs.yaml of the head, say."""
        name, path = source.split(":")
        for other in names:
            os.makedirs(self.path(other, "root") + target, exist_ok=True)
            for file in glob.glob(self.path(name, "root") + path):
                shutil.copy(file, self.path(other, "root") + target)

    def stop(self):
        for name in self.booted():
            os.kill(self.pid(name), signal.SIGKILL)
        self.until(lambda: not self.booted(), 30)
        sh("for root in {0}/machines/*/root; do ! mountpoint -q $root || umount $root; done\n"
           "rm -rf --one-file-system {0}/machines\n"
           "for tree in {2}; do [ ! -d $tree ] || find $tree -depth -type d -exec rmdir {{}} \\;; done\n"
           "ip link del {1} 2>/dev/null || true\n"
           "nft delete table ip {1} 2>/dev/null || true\n"
           "[ ! -e {0}/ip_forward ] || sysctl -qw net.ipv4.ip_forward=$(cat {0}/ip_forward)\n"
           "rm -f {0}/ip_forward".format(self.folder, BRIDGE, self.cgroup("*")))


class Block:
    def __init__(self, number, heading, label, text):
        self.number, self.heading, self.label, self.text = number, heading, label, text

    def machines(self, booted):
        return {"build": ["build"], "head": ["head"], "node": [n for n in NODES + NEW if n in booted],
                "new": [n for n in NEW if n in booted],
                "all": [n for n in ["head"] + NODES + NEW if n in booted]}[self.label]

    def __str__(self):
        return "%2d %-5s %s: %s" % (self.number, self.label, self.heading, self.text.splitlines()[0])


def blocks():
    found, heading, current = [], "", None
    with open(GUIDE) as handle:
        for line in handle:
            start = re.match(r"( *)```sh (\w+)$", line)
            if start:
                current, indent, label = [], len(start.group(1)), start.group(2)
            elif current is not None and line.strip() == "```":
                found.append(Block(len(found) + 1, heading, label, "".join(current)))
                current = None
            elif current is not None:
                current.append(line[indent:] if line.strip() else line)
            elif line.startswith("#"):
                heading = line.strip("# \n")
    return found


def hybrid():
    """Whether this machine has cgroup v1, which every container sees, too, and slurmd does not accept."""
    with open("/proc/self/cgroup") as handle:
        return any(not line.startswith("0:") for line in handle)


def prepare(machines, block):
    """What the text around a block has the administrator do before it."""
    nodes = [name for name in NODES + NEW if name in machines.booted()]
    if block.heading == "1. Build packages":
        sh("git clone -q %s %s" % (TOP, machines.path("build", "root") + "/usr/src/slurm-ocs"))
    elif block.text.startswith("groupadd"):
        machines.copy("build:/usr/src/slurm-ocs/build/package/deb/slurm-ocs-*.deb", "/root/packages", ["head"] + nodes)
    elif block.text.startswith("chown munge"):
        machines.copy("head:/etc/munge/munge.key", "/etc/munge", nodes)
    elif block.label in ("node", "new") and "restart slurmd" in block.text and hybrid():
        for name in nodes:
            machines.on(name, "echo CgroupPlugin=disabled >/etc/slurm/cgroup.conf")
    elif block.text.startswith("apt-mark unhold"):
        machines.until(lambda: not machines.on("head", "squeue -h -t all")[1], 600)
    elif block.heading == "Changes of ocs.yaml" and block.label == "head" and not set(NEW) & set(nodes):
        add_nodes(machines)


def add_nodes(machines):
    """As in step 2, with the files of the others."""
    for name in NEW:
        machines.boot(name)
    for block in blocks():
        if block.heading == "2. Install" and block.label != "head":
            prepare(machines, block)
            for name in NEW:
                machines.on(name, block.text)
    for path in "slurm.conf", "ocs.yaml", "plugstack.conf.d/ocs.conf":
        machines.copy("head:/etc/slurm/" + path, os.path.dirname("/etc/slurm/" + path), NEW)


def fault(block, code, output):
    """What contradicts the text around the block."""
    lines = block.text.splitlines()
    if code:
        return "status %d" % code
    if "ocsctl check" in lines and "all agree" not in output:
        return "the files do not agree"
    if lines[-1] == "ocsctl show circuit" and not re.match(r"JOB +SWITCH ", output.splitlines()[-1]):
        return "circuits are left"
    if block.heading == "5. Start" and "ocsctl show switch" in lines and len(re.findall(" up ", output)) != 12:
        return "switches are not up"
    if "squeue" in lines and block.heading == "Upgrades" and not re.search(r" R .* n\[0-3\]", output):
        return "no job runs"
    return None


def run(machines, first, last):
    failed = 0
    for block in blocks()[first - 1:last]:
        prepare(machines, block)
        start, names = time.time(), block.machines(machines.booted())
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            seen = list(pool.map(lambda name: machines.on(name, block.text, check=False), names))
        for name, (code, output) in zip(names, seen):
            wrong = fault(block, code, output)
            failed += wrong is not None
            print("\n%s %s on %s, %.0f s" % ("not ok (%s)" % wrong if wrong else "ok", block, name,
                                              time.time() - start))
            print("".join("    %s\n" % line for line in output.splitlines()), flush=True)
        if failed:
            break
    return failed


def main(folder, what=None, *words):
    machines = Machines(folder)
    if what == "list":
        print(*blocks(), sep="\n")
    elif what == "boot":
        for name in words:
            machines.boot(name)
    elif what == "run":
        return run(machines, int(words[0]), int(words[-1])) != 0
    elif what == "on":
        code, output = machines.on(words[0], " ".join(words[1:]), check=False)
        print(output, end="")
        return code
    elif what == "stop":
        machines.stop()
    elif what is None:
        return everything(machines)
    return 0


def everything(machines):
    try:
        machines.boot("build")
        failed = run(machines, 1, 1)
        if not failed:
            for name in ["head"] + NODES:
                machines.boot(name)
            failed = run(machines, 2, len(blocks()))
    finally:
        machines.stop()
    return failed != 0


if __name__ == "__main__":
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        print(__doc__, end="")
        sys.exit(2 if len(sys.argv) < 2 else 0)
    sys.exit(main(*sys.argv[1:]))
