#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Packages under running jobs: installed, upgraded, downgraded, taken out and purged, with dpkg, on a cluster
whose /usr, /etc, Slurm and dpkg are copies on write.

    OCS_SLURM=PREFIX upgrade.py OLD NEW      folders with the packages of two versions
"""

import glob
import os
import shutil
import signal
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../slurm"))
from cluster import Cluster  # noqa: E402

NAMES = ("slurm-ocs-plugins", "slurm-ocs-ocsd", "slurm-ocs-tools")
# In place of systemd: what the packages ask of it.
SYSTEMCTL = "#!/bin/sh\necho \"$*\" >>{log}\n"
OVERLAYS = r"""set -e
mount -t tmpfs tmpfs {scratch}
for folder in /usr /etc /var/lib {slurm}; do
    mkdir -p {scratch}/$folder/up {scratch}/$folder/work
    mount -t overlay overlay -o lowerdir=$folder,upperdir={scratch}/$folder/up,workdir={scratch}/$folder/work $folder
done
cp {hosts} /etc/hosts
rm -rf /usr/sbin/policy-rc.d /etc/slurm /var/lib/ocsd /var/lib/slurm-ocs-ocsd
mkdir -p /run/systemd/system {slurm}/etc
rm -f /usr/bin/systemctl
mv {systemctl} /usr/bin/systemctl
chmod +x /usr/bin/systemctl
"""


class Installed(Cluster):
    """slurm-ocs comes from packages, below /usr and among the plugins of Slurm."""

    def __init__(self, directory, slurm, packages):
        super().__init__(directory, "/usr", slurm, cubes=5, edge=2, tile=(2, 2, 1), delay_ms=1, config={
            "PluginDir": "%s/lib/slurm" % slurm, "MinJobAge": "2"})
        self.packages = packages

    def ocs_yaml(self):
        return super().ocs_yaml().replace("  admins: [root]", "  user: root\n  admins: [root]")

    def configure(self):
        super().configure()
        self.write("etc/plugstack.conf", "required spank_ocs.so dir=/run/ocs/%%n conf=%s\n" % self.yaml
                   if self.parts else "")

    def start_namespace(self):
        super().start_namespace()
        self.write("systemctl", SYSTEMCTL.format(log=self.path("systemctl.log")))
        os.makedirs(self.path("scratch"), exist_ok=True)
        self.run(OVERLAYS.format(scratch=self.path("scratch"), slurm=self.slurm, hosts=self.path("hosts"),
                                 systemctl=self.path("systemctl")))
        self.install(self.packages)

    def install(self, folder):
        self.dpkg("--install", *[path for name in NAMES for path in glob.glob("%s/%s_*.deb" % (folder, name))])

    def dpkg(self, *words, **options):
        return self.run(["dpkg", *words], timeout=300, **options)

    def versions(self):
        return self.out(["dpkg-query", "-W", "-f", "${Version}\n", *NAMES]).split()

    def asked_of_systemd(self):
        if not os.path.exists(self.path("systemctl.log")):
            return []
        with open(self.path("systemctl.log")) as handle:
            lines = handle.read().splitlines()
        os.unlink(self.path("systemctl.log"))
        return [line for line in lines if "ocsd.service" in line]

    def restart_ocsd(self):
        self.kill("ocsd", signal.SIGTERM)
        self.start_ocsd()

    def restart_slurm(self):
        self.kill("slurmctld", signal.SIGTERM)
        self.start_slurmctld()
        for name in self.nodes:
            self.stop_slurmd(name, signal.SIGTERM)
            self.start_slurmd(name)


def expect(condition, *seen):
    if not condition:
        raise AssertionError(seen)


def lives_on(cluster, jobs, patches):
    """The jobs run, and no circuit of theirs was cut meanwhile."""
    for job in jobs:
        expect(cluster.state(job) == "RUNNING", cluster.job(job))
        expect(cluster.job(job).get("Restarts") == "0", cluster.job(job))
    expect(patches <= cluster.patches(), patches - cluster.patches())


def leave(cluster, job):
    cluster.run(["scancel", str(job)])
    cluster.until(lambda: str(job) not in cluster.out(["squeue", "-h", "-o", "%A"]).split(), 60, "job %d to end" % job)


def change(cluster, folder, jobs):
    """Other packages under JOBS, whose circuits stand; then the order of the guide: ocsd, slurmctld, slurmds.
    A job between two steps starts, too."""
    patches, makes = cluster.patches(), cluster.makes()
    expect(patches)
    cluster.asked_of_systemd()
    cluster.install(folder)
    asked = cluster.asked_of_systemd()
    expect(any("try-restart" in line for line in asked), asked)
    expect(not any(" stop" in line for line in asked), asked)
    lives_on(cluster, jobs, patches)
    cluster.restart_ocsd()
    lives_on(cluster, jobs, patches)
    expect(cluster.makes() == makes, "circuits were made anew")
    between = cluster.sbatch("--shape=2x2x4", script="sleep 600")
    cluster.running(between)
    expect(cluster.lit(between))
    cluster.saved(between)
    cluster.restart_slurm()
    lives_on(cluster, jobs + [between], patches)
    check = ["ocsctl", "check", cluster.yaml, "--slurm-conf", cluster.path("etc", "slurm.conf")]
    cluster.until(lambda: "all agree" in cluster.run(check, check=False).stdout, 60,
                  lambda: "all to agree: %s" % cluster.run(check, check=False))
    # An heir of these nodes meets the epilog and the prolog of the new ones.
    leave(cluster, between)
    after = cluster.sbatch("--shape=2x2x4", script="srun -n1 printenv SLURM_OCS_SHAPE; sleep 600")
    cluster.running(after)
    expect(cluster.lit(after))
    lives_on(cluster, jobs + [after], patches)
    leave(cluster, after)


def configure_anew(cluster, parts):
    """Other plugins, the same keys."""
    keys = {name: open(cluster.path(name, "slurm.key"), "rb").read() for name in ("etc", "etc-slurmd")}
    cluster.parts = parts
    cluster.configure()
    for name, key in keys.items():
        with open(cluster.path(name, "slurm.key"), "wb") as handle:
            handle.write(key)


def out_again(cluster):
    """Removal waits until slurm.conf names no plugin and jobs of that time are gone; then nothing stays, and
    Slurm runs without."""
    slurm_conf = cluster.path("etc", "slurm.conf")
    cluster.run("ln -sf %s %s/etc/slurm.conf" % (slurm_conf, cluster.slurm))
    done = cluster.dpkg("--purge", "slurm-ocs-plugins", check=False)
    expect(done.returncode != 0 and "names these plugins" in done.stderr, done.stderr)
    expect(len(cluster.versions()) == 3 and cluster.out(["ls", cluster.slurm + "/lib/slurm/spank_ocs.so"]))
    cluster.cancel_all()
    cluster.until(lambda: not cluster.patches(), 60, "dark switches")
    configure_anew(cluster, ())
    cluster.restart_slurm()
    cluster.kill("ocsd", signal.SIGTERM)
    cluster.until(lambda: not cluster.out(["squeue", "-h", "-t", "all"]), 300, "slurmctld to forget the jobs")
    cluster.run("mkdir -p /var/lib/ocsd && touch /var/lib/ocsd/ocsd.db")
    cluster.dpkg("--purge", *NAMES)
    left = cluster.run("dpkg-query -W 'slurm-ocs-*' 2>/dev/null; getent passwd ocsd; find /usr /etc /var/lib %s -name '*ocs*' "
                       "-newer %s" % (cluster.slurm, cluster.path("init.ready")), check=False).stdout.split()
    expect(not [name for name in left if "/dpkg/" not in name], left)
    cluster.restart_slurm()
    cluster.wait_idle()
    cluster.running(cluster.sbatch("-N1", script="sleep 600"))


def main(old, new):
    slurm = os.environ["OCS_SLURM"]
    cluster = Installed(tempfile.mkdtemp(prefix="ocs-test-"), slurm, old)
    try:
        cluster.start()
        before = cluster.versions()
        jobs = [cluster.sbatch("--shape=" + shape, script="sleep 3600") for shape in ("2x2x4", "2x2x1")]
        for job in jobs:
            cluster.running(job)
            cluster.saved(job)
        print("upgrade", flush=True)
        change(cluster, new, jobs)
        after = cluster.versions()
        for a, b in zip(before, after):
            cluster.dpkg("--compare-versions", a, "lt", b)
        print("downgrade", flush=True)
        change(cluster, old, jobs)
        expect(cluster.versions() == before, before)
        cluster.install(new)
        print("out again", flush=True)
        out_again(cluster)
    finally:
        cluster.stop()
        if not os.environ.get("OCS_KEEP"):
            shutil.rmtree(cluster.dir, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
