#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""ocsctl against the real ocsd and the emulated switches.  TAP on stdout.

Two cubes of edge 2 with two nodes each: a 4x2x2 takes both, and its four rings
along x need two circuits each.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from terminal import Terminal  # noqa: E402

BUILD = os.environ["OCS_BUILD_DIR"]
YAML = """version: 1
ocsd:
  socket: unix:{dir}/ocsd.sock
  state: {dir}/ocsd
timeouts: {{switch: 2s, retry: 1s, poll: 5s, prolog: 30s, ocsd_down: 20s}}
switches:
  - name: ocs-[x,y,z]-[0-1]-[0-1]
    driver: tl1
    dialect: polatis
    address: "unix:{dir}/switch{{index}}.sock"
    credentials: {dir}/cred
    size: 16
    ports: duplex
fabrics:
  - name: pod
    kind: torus
    cube: 2x2x2
    tile: 1x2x2
    cubes:
      - {{name: c0, nodes: "n[0-1]"}}
      - {{name: c1, nodes: "n[2-3]"}}
    ports:
      switch: "ocs-{{dim}}-{{a}}-{{b}}"
      port: 2*cube+sign+1
"""

tests = 0


def check(good, name, seen=""):
    global tests
    tests += 1
    print("%sok %d - %s" % ("" if good else "not ", tests, name))
    if not good:
        print("\n".join("# " + line for line in str(seen).splitlines()[:60]))
    sys.stdout.flush()
    return good


class World:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="ocsctl-")
        self.yaml = self.path("ocs.yaml")
        self.programs = []
        with open(self.yaml, "w") as handle:
            handle.write(YAML.format(dir=self.dir))
        with open(self.path("cred"), "w") as handle:
            handle.write("user=admin\npassword=secret\n")
        os.chmod(self.path("cred"), 0o600)
        os.mkdir(self.path("ocsd"), 0o700)
        self.env = dict(os.environ, OCS_CONF=self.yaml, NO_COLOR="1", TZ="UTC")
        self.env.pop("SLURM_CONF", None)

    def path(self, name):
        return os.path.join(self.dir, name)

    def spawn(self, program, *arguments):
        log = open(self.path(program + ".log"), "a")
        folder = "emulator" if program == "ocs-emulator" else program
        child = subprocess.Popen(["%s/src/%s/%s" % (BUILD, folder, program)] +
                                 list(arguments), stdout=log, stderr=log, env=self.env)
        self.programs.append(child)
        return child

    def ctl(self, *arguments, stdin=None):
        done = subprocess.run([BUILD + "/src/ocsctl/ocsctl"] + list(arguments),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=self.env, timeout=60, input=stdin)
        return done.returncode, done.stdout, done.stderr

    def json(self, *arguments):
        code, out, err = self.ctl(*arguments, "--json")
        return json.loads(out) if code == 0 else {"code": code, "err": err}

    def ask(self, **request):
        """What slurmctld says; ocsctl has no words for it."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(30)
            sock.connect(self.path("ocsd.sock"))
            sock.sendall((json.dumps(dict(request, id=1)) + "\n").encode())
            for line in sock.makefile():
                reply = json.loads(line)
                if reply.get("id") == 1:
                    return reply

    def stop(self):
        for child in reversed(self.programs):
            if child.poll() is None:
                child.terminate()
        for child in self.programs:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.dir)


def until(condition, seconds=15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def start(world):
    world.spawn("ocs-emulator", "--fabric", world.yaml, "--delay", "5",
                "--control", "unix:" + world.path("emulator.sock"))
    until(lambda: os.path.exists(world.path("emulator.sock")))
    world.ocsd = world.spawn("ocsd", "--foreground", "--fabric", world.yaml)
    return check(until(lambda: world.ctl("show", "fabric")[0] == 0), "ocsd answers",
                 open(world.path("ocsd.log")).read() + open(world.path("ocs-emulator.log")).read())


def test_empty(world):
    switches = world.json("show", "switch").get("switches", [])
    check(len(switches) == 12 and {s["state"] for s in switches} == {"up"},
          "show switch: twelve, all up", switches)
    code, out, err = world.ctl("show", "switch", "ocs-x-0-0")
    check(code == 0 and out.startswith("SWITCH") and out.splitlines()[1].startswith("ocs-x-0-0"),
          "one switch by name", out + err)
    rows = [line.split() for line in out.split("\n\n")[1].splitlines()]
    check("STATUS" in rows[0] and len(rows) > 4 and all("TUNED" in row for row in rows[1:]),
          "with its ports, their status and power", out)
    code, out, err = world.ctl("show", "switch", "nowhere")
    check(code == 2 and "no switch nowhere; 'ocsctl show switch'" in err and
          len(err.splitlines()) == 1, "an unknown switch is an error", out + err)
    for what, name, status, hint in (("cube", "c9", 2, "'ocsctl show cube'"),
                                     ("port", "nowhere:1", 2, "SWITCH:PORT"),
                                     ("circuit", "nowhere", 2, "'ocsctl show switch'"),
                                     ("circuit", "99", 1, "'ocsctl explain 99'"),
                                     ("job", "99", 1, "'ocsctl explain 99'"),
                                     ("job", "x", 2, "squeue"), ("fabric", "pod", 2, "too much")):
        code, out, err = world.ctl("show", what, name)
        check(code == status and hint in err and not out, "show %s %s" % (what, name), out + err)
    code, out, err = world.ctl("show", "circuit", "ocs-x-0-0")
    check(code == 0 and len(out.splitlines()) == 1, "a switch without circuits", out + err)
    code, out, err = world.ctl("show", "circuit")
    check(code == 0 and len(out.splitlines()) == 1, "no circuits: only a header", out + err)
    code, out, err = world.ctl("show", "port", "ocs-x-0-0:1")
    check(code == 0 and "c0 +x 0,0" in out, "a port and where it leads", out + err)
    code, out, err = world.ctl("place", "4x2x2")
    check(code == 0 and "in 2 cubes, 8 circuits" in out, "place asks ocsd what is free",
          out + err)
    check("nodes" in err, "and warns that slurmctld has not spoken", err)
    code, out, err = world.ctl("explain", "7")
    check(code == 1 and "knows no job 7" in err, "explain an unknown job", out + err)


def commit(world):
    code, out, err = world.ctl("place", "4x2x2", "--fabric", world.yaml, "--compact")
    compact = out.strip()
    check(code == 0 and compact and " " not in compact, "a compact placement", out + err)
    reply = world.ask(op="commit", job=7, epoch=3, uid=os.getuid(), user="alice",
                      section="pod", partition="tpu", nodes="n[0-3]", shape="4x2x2",
                      conn="torus,torus,torus", placement=compact)
    check(reply["ok"], "commit", reply)
    reply = world.ask(op="nodes", nodes={
        "n%d" % i: {"state": "busy", "job": 7} for i in range(4)})
    check(reply["ok"], "node states", reply)


def test_job(world):
    code, out, err = world.ctl("apply", "7", "--epoch", "3", "--node", "n0")
    check(code == 0 and "8 circuits" in out, "apply waits for the circuits", out + err)
    reply = world.json("apply", "7", "--epoch", "3", "--node", "n1")
    check(reply.get("ok") is True and reply.get("circuits") == 8,
          "apply is idempotent; --json is the daemon's reply", reply)
    code, out, err = world.ctl("apply", "7", "--node", "n0", "--after", "1")
    check(code == 2 and "job 7 has no plan that could be repaired" in err, "no plan", out + err)
    code, out, err = world.ctl("apply", "7", "--epoch", "3", "--node", "stranger")
    check(code in (1, 2) and "stranger" in err, "a node that is not in the job is refused",
          "%d %s%s" % (code, out, err))
    circuits = world.json("show", "circuit").get("circuits", [])
    check(len(circuits) == 8 and {c["state"] for c in circuits} == {"CONNECTED"},
          "show circuit", circuits)
    job = world.json("show", "job", "7").get("jobs", [{}])[0]
    check(job.get("state") == "realised" and job.get("shape") == "4x2x2", "show job", job)
    code, out, err = world.ctl("explain", "7")
    check(code == 0 and "cubes:    c[0-1]\n" in out and "nodes:    n[0-3]\n" in out and
          "circuits: 8, 8 CONNECTED; 'ocsctl show circuit 7' lists them\n" in out and
          "SWITCH" not in out, "explain", out + err)
    switches = world.json("show", "switch").get("switches", [])
    check(sum(s["circuits"] for s in switches) == 8 and
          sum(s["patches"] for s in switches) in (0, 8, 16), "a circuit is no patch", switches)
    cubes = world.json("show", "cube").get("cubes", [])
    check([(c["name"], c["nodes"], c["jobs"]) for c in cubes] ==
          [("c0", "n[0-1]", [7]), ("c1", "n[2-3]", [7])], "show cube has its nodes and jobs", cubes)
    explained = world.json("explain", "7")
    check(explained.get("state") == "realised" and len(explained.get("circuits", [])) == 8,
          "explain --json", explained)
    code, out, err = world.ctl("place", "4x2x2")
    check(code == 4, "a second one does not fit now", out + err)
    code, out, err = world.ctl("place", "8x8x8")
    check(code == 3, "a larger one never", out + err)


def test_map(world):
    code, out, err = world.ctl("map")
    check(code == 0 and out == """section pod
c0      c1
AA AA   AA AA
AA AA   AA AA

A  job 7, alice, 4x2x2, realised (16 XPUs)
.  free (0 of 16 XPUs)
""", "map", out + err)
    mapped = world.json("map")
    check(len(mapped.get("nodes", [])) == 4 and mapped["nodes"][3]["cube"] == "c1" and
          mapped["jobs"][0]["job"] == 7, "map --json", mapped)
    svg = world.path("map.svg")
    code, out, err = world.ctl("map", "--svg", svg)
    text = open(svg).read() if os.path.exists(svg) else ""
    check(code == 0 and "<svg" in text and "</svg>" in text, "map --svg", err + text)


def watch(world, *arguments, colour=False, **size):
    env = dict(world.env, TERM="xterm")
    if colour:
        env.pop("NO_COLOR")
    return Terminal([BUILD + "/src/ocsctl/ocsctl", "map"] + list(arguments), env=env, **size)


def test_watch(world):
    screen = watch(world, "--watch=1", colour=True)
    text = screen.shows("every 1 s; Ctrl-C ends", "AA AA   AA AA", "A  job 7, alice")
    check(text and text.splitlines()[1] == "section pod", "map --watch", screen.raw)
    check(screen.alternate and not screen.cursor, "on a screen of its own")
    check("1;32" in screen.colours and screen.child.poll() is None, "in colour", screen.colours)
    screen.size(6, 30)
    check(screen.shows("AA AA   AA AA", "more lines; the scree"), "a very low one",
          screen.text())
    check(len(screen.text().splitlines()) <= 6 and max(map(len, screen.lines)) < 30, "is not left",
          screen.text())
    screen.key(b"\x03")
    code = screen.end()
    check(code == 0 and not screen.alternate and screen.cursor and screen.same and
          screen.raw.endswith(b"\x1b[?1049l"), "Ctrl-C gives the terminal back", (code, screen.raw[-80:]))
    screen = watch(world, "--watch=86400")
    screen.shows("AA AA   AA AA")
    screen.key(b"\x1a")
    left = screen.left()
    until(lambda: " T " in open("/proc/%d/stat" % screen.child.pid).read())
    screen.child.send_signal(signal.SIGCONT)
    screen.lines = [""] * screen.rows
    check(left and screen.shows("AA AA   AA AA") and screen.alternate, "Ctrl-Z and back",
          screen.raw[-200:])
    screen.key(b"\x03")
    screen.end()
    screen = watch(world, "--watch")
    check(screen.shows("every 2 s", "AA AA") and not screen.colours, "NO_COLOR", screen.raw)
    screen.child.terminate()
    code = screen.end()
    check(code == -signal.SIGTERM and not screen.alternate and screen.cursor, "a signal ends it, too",
          (code, screen.raw[-80:]))
    screen = watch(world, colour=True)
    check(screen.end() == 0 and not screen.alternate and b"\x1b[1;32mA" in screen.raw,
          "one picture in colour stays", screen.raw)
    for bad in ("--watch=0", "--watch=soon", "--watch=-1"):
        code, out, err = world.ctl("map", bad)
        check(code == 2 and "from 1 to 86400" in err, bad, out + err)
    with subprocess.Popen([BUILD + "/src/ocsctl/ocsctl", "map", "--watch=1", "--json"],
                          stdout=subprocess.PIPE, env=world.env, text=True) as child:
        lines = [json.loads(child.stdout.readline()) for _ in range(2)]
        child.terminate()
    check(lines[0]["jobs"][0]["job"] == 7 and lines[0]["nodes"] == lines[1]["nodes"],
          "watched by a program: an object per line", lines)


def test_advise(world):
    code, out, err = world.ctl("advise", "4x2x2")
    check(code == 4 and "4 nodes and 0 are free" in err, "advise: no room", out + err)
    with open(world.path("map.json"), "w") as handle:
        handle.write(world.ctl("map", "--json")[1])
    code, out, err = world.ctl("advise", "4x2x2", "--map", world.path("map.json"))
    check(code == 4 and "4 nodes and 0 are free" in err, "the same from a map", out + err)


def test_release(world):
    for node in ("n0", "n1", "n2"):
        code, out, err = world.ctl("release", "7", "--epoch", "3", "--node", node)
        check(code == 0, "release by " + node, out + err)
    check(world.json("show", "fabric").get("room") ==
          [{"section": "pod", "xpus": 16, "free": 0, "whole_cubes": 0,
            "fragmentation_percent": 0, "largest": []}], "show fabric: nothing is free")
    check(len(world.json("show", "circuit").get("circuits", [])) == 8,
          "circuits stay until the last node")
    code, out, err = world.ctl("release", "7", "--epoch", "3", "--node", "n3")
    check(code == 0, "release by the last", out + err)
    check(world.json("show", "circuit").get("circuits") == [], "then they are gone")
    code, out, err = world.ctl("release", "7")
    check(code == 0, "release is idempotent", out + err)
    world.ask(op="nodes", nodes={"n0": {"state": "idle"}, "n1": {"state": "busy"},
                                 "n2": {"state": "down"}})


def test_drain(world):
    code, out, err = world.ctl("map")
    check(code == 0 and out == """section pod
c0      c1
.. ..   ## ##
** **   .. ..

*  in use without a shape (4 XPUs)
#  down or drained (4 XPUs)
.  free (8 of 16 XPUs)
""", "map: an unshaped job's node, a dead node", out + err)
    # half of each cube: the whole cube is no use, the halves and smaller boxes are
    check(world.json("show", "fabric").get("room") ==
          [{"section": "pod", "xpus": 16, "free": 8, "whole_cubes": 0,
            "fragmentation_percent": 33, "largest": ["8", "4x2", "2x2x2"]}], "show fabric: room")
    code, out, err = world.ctl("show", "fabric")
    check("pod 16 8 0 33 8,4x2,2x2x2" in " ".join(out.split()), "as a table", out + err)
    # described in ocs.yaml, but not (or no longer) in slurm.conf
    world.ask(op="nodes", nodes={"n%d" % i: {"state": "absent" if i == 2 else "idle"}
                                 for i in range(4)})
    code, out, err = world.ctl("map")
    check("#  down or drained (4 XPUs)" in out and "free (12 of 16 XPUs)" in out,
          "map: a node that Slurm does not have", out + err)
    check([n["node"] for n in world.json("map")["nodes"] if n["state"] == "absent"] == ["n2"],
          "in JSON, too")
    shown = world.json("show", "fabric")
    check((shown["room"][0]["free"], [o["name"] for o in shown["out_of_service"]
                                      if o["state"] == "absent"]) == (12, ["n2"]),
          "show fabric: it is no room", shown)
    world.ask(op="nodes", nodes={"n%d" % i: {"state": "down" if i == 2 else "idle"}
                                 for i in range(4)})
    code, out, err = world.ctl("place", "2x2x2")
    check(code == 0 and "cubes: c0" in out, "the healthy cube is free", out + err)
    # what nobody has, but not everybody may, is neither in use nor down
    world.ask(op="nodes", nodes={"n0": {"state": "reserved"}, "n1": {"state": "idle"},
                                 "n2": {"state": "down"}, "n3": {"state": "busy"}})
    code, out, err = world.ctl("place", "2x2")
    check(code == 0 and "nodes: n1\n" in out and "=  idle, but reserved (4 XPUs)" in out and
          "*  in use or down (8 XPUs)" in out and "== ==" in out, "place shows reserved nodes",
          out + err)
    world.ask(op="nodes", nodes={"n%d" % i: {"state": "down" if i == 2 else "idle"}
                                 for i in range(4)})
    code, out, err = world.ctl("drain", "cube", "c0", "--reason", "new cables")
    check(code == 0 and out == "cube c0 is drained\n", "drain a cube", out + err)
    code, out, err = world.ctl("show", "fabric")
    check("new cables" in out, "show fabric gives the reason", out + err)
    rows = [(o["kind"], o["name"], o["state"], o["reason"])
            for o in world.json("show", "fabric").get("out_of_service", [])]
    check(rows == [("cube", "c0", "drained", "new cables"), ("nodes", "n2", "down", "")],
          "and all that is out of service", rows)
    check(all(" ".join(row).strip() in " ".join(out.split()) for row in rows), "as a table", out)
    code, out, err = world.ctl("show", "cube", "c0")
    check(out.splitlines()[1].split() == ["c0", "pod", "drained", "n[0-1]", "-", "new", "cables"],
          "show cube has the reason", out + err)
    code, out, err = world.ctl("place", "2x2x2")
    check(code == 4, "nothing is placed there", out + err)
    code, out, err = world.ctl("map")
    check(out.count("#") == 4 * 3 + 1, "map shows it", out + err)
    code, out, err = world.ctl("resume", "cube", "c0")
    check(code == 0 and out == "cube c0 is in service\n", "resume", out + err)
    world.ctl("drain", "xpu", "c0:0,0,0", "--reason", "dead")
    code, out, err = world.ctl("map")
    check("#  down or drained (8 XPUs)" in out and "free (8 of 16 XPUs)" in out,
          "map shows the node of a drained XPU", out + err)
    check([n["node"] for n in world.json("map")["nodes"] if n["state"] == "drained"] == ["n0"],
          "in JSON, too")
    world.ctl("resume", "xpu", "c0:0,0,0")
    code, out, err = world.ctl("drain", "port", "ocs-x-0-0:1")
    check(code == 0, "drain a port", out + err)
    check(world.json("resume", "port", "ocs-x-0-0:1").get("drained") is False,
          "resume --json")
    code, out, err = world.ctl("resume", "port", "ocs-y-0-0:1")
    check(code == 0 and out == "port ocs-y-0-0:1 is in service\n", "resume what is not drained", out + err)
    world.ctl("drain", "switch", "ocs-y-0-0", "--reason", "fibres")
    code, out, err = world.ctl("resume", "port", "ocs-y-0-0:1")
    check(code == 0 and out == "port ocs-y-0-0:1 is resumed, but stays out of service: its switch is drained\n",
          "a port of a drained switch", out + err)
    check(world.json("resume", "port", "ocs-y-0-0:1").get("reason") == "its switch is drained", "in JSON, too")
    world.ctl("resume", "switch", "ocs-y-0-0")
    code, out, err = world.ctl("drain", "switch", "nowhere")
    check(code in (1, 2) and "nowhere" in err, "an unknown switch", out + err)
    check(world.json("reconcile").get("drift") == [], "reconcile: nothing drifted")
    shown = world.json("show", "switch", "ocs-x-0-0")
    check([(e["what"], e.get("before"), e.get("who")) for e in shown.get("history", [])] ==
          [("drain", "ocs-x-0-0:1", os.getuid()), ("resume", "ocs-x-0-0:1", os.getuid())] and
          len(shown.get("ports", [])) == 16, "show switch NAME has its ports and its history", shown)
    code, out, err = world.ctl("show", "switch", "ocs-x-0-0", "--last", "1")
    lines = out.split("\n\n")[-1].splitlines()
    check(code == 0 and len(lines) == 2 and lines[0].split()[:3] == ["TIME", "WHAT", "JOB"] and
          lines[1].split()[1] == "resume", "as a table, the last of it", out + err)
    code, out, err = world.ctl("show", "switch", "ocs-x-0-0", "--last", "0")
    check(code == 2, "--last 0", out + err)
    revision = world.json("show", "fabric").get("revision")
    check(isinstance(revision, int), "show --json has the revision", revision)
    code, out, err = world.ctl("drain", "cube", "c0", "--expect", str(revision))
    check(code == 0, "a change that expects it", out + err)
    code, out, err = world.ctl("drain", "cube", "c1", "--expect", str(revision))
    now = world.json("show", "fabric").get("revision")
    check(code == 1 and len(err.splitlines()) == 1 and str(revision) in err and str(now) in err,
          "one that expects the past names both", out + err)
    check([d["name"] for d in world.json("show", "fabric")["drains"]] == ["c0"], "nothing was done")
    for _ in range(2):
        code, out, err = world.ctl("resume", "cube", "c0", "--transaction", "t:1")
        check(code == 0 and out == "cube c0 is in service\n", "a transaction", out + err)
    code, out, err = world.ctl("resume", "cube", "c1", "--transaction", "t:1")
    check(code == 2 and "t:1" in err, "its id with other words", out + err)
    code, out, err = world.ctl("reconcile")
    check(code == 0 and len(out.splitlines()) == 1, "and one line says so", out + err)


def test_pending(world):
    reply = world.ask(op="pending", job=9, user="bob", shape="4x2x2",
                      reason="needs 2 free cubes; 0 are free")
    check(reply["ok"], "a pending reason", reply)
    code, out, err = world.ctl("explain", "9")
    check(code == 0 and "needs 2 free cubes; 0 are free" in out and "bob" in out,
          "explain a job that waits", out + err)
    check(world.json("explain", "9").get("state") == "pending", "in JSON too")


def test_gone(world):
    code, out, err = world.ctl("place", "2x2x2", "--fabric", world.yaml, "--compact")
    reply = world.ask(op="commit", job=10, epoch=5, uid=os.getuid(), user="alice",
                      section="pod", partition="tpu", nodes="n[0-1]", shape="2x2x2",
                      conn="torus,torus,torus", placement=out.strip())
    check(reply["ok"], "another job", reply)
    world.ask(op="end", job=10, epoch=5, reason="cancelled")
    code, out, err = world.ctl("apply", "10", "--epoch", "5", "--node", "n0", "--json")
    check(code == 1 and '"gone":true' in out, "apply of a job that has left says gone",
          "%d %s%s" % (code, out, err))
    world.ask(op="gone", job=10, epoch=5)


def test_watch_on(world):
    """Jobs come and go; ocsd goes and comes."""
    def commit(job, cube, nodes):
        drained = "c1" if cube == "c0" else "c0"
        world.ctl("drain", "cube", drained)
        code, out, err = world.ctl("place", "2x2x2", "--compact")
        world.ctl("resume", "cube", drained)
        reply = world.ask(op="commit", job=job, epoch=job, uid=os.getuid(), user="alice",
                          section="pod", partition="tpu", nodes=nodes, shape="2x2x2",
                          conn="torus,torus,torus", placement=out.strip())
        check(reply["ok"], "job %d" % job, str(reply) + out + err)

    world.ask(op="nodes", nodes={"n%d" % i: {"state": "idle"} for i in range(4)})
    commit(20, "c0", "n[0-1]")
    commit(21, "c1", "n[2-3]")
    screen = watch(world, "--watch=1")
    check(screen.shows("AA AA   BB BB", "A  job 20", "B  job 21"), "two jobs", screen.text())
    world.ask(op="end", job=20, epoch=20, reason="done")
    world.ask(op="gone", job=20, epoch=20)
    check(screen.shows(".. ..   BB BB", without=["job 20"]), "the other keeps its letter", screen.text())
    commit(22, "c0", "n[0-1]")
    check(screen.shows("CC CC   BB BB", "C  job 22"), "a new job has a new letter", screen.text())
    world.ocsd.terminate()
    world.ocsd.wait()
    check(screen.shows(": cannot", "CC CC   BB BB"), "without ocsd the last picture stays",
          screen.text())
    world.ocsd = world.spawn("ocsd", "--foreground", "--fabric", world.yaml)
    check(screen.shows("every 1 s", "job 22", "job 21"), "and goes on with it", screen.text())
    screen.key(b"\x03")
    check(screen.end() == 0, "the end", screen.raw[-80:])
    svg = world.path("map.svg")
    world.ctl("drain", "cube", "c1")
    code, out, err = world.ctl("map", "--svg", svg)
    text = open(svg).read()
    check(text.count(">A</text>") == 8 + 1 and text.count(">B</text>") == 8 + 1 and
          "section pod, 20" in text, "as a picture", err + text)
    for job in (21, 22):
        world.ask(op="end", job=job, epoch=job, reason="done")
        world.ask(op="gone", job=job, epoch=job)
    world.ctl("map", "--svg", svg)
    text = open(svg).read()
    check(text.count("fill=\"url(#down)\"") == 8 + 1 and "down or drained (8 XPUs)" in text and
          "free (8 of 16 XPUs)" in text, "a drained cube is hatched", text)
    world.ctl("resume", "cube", "c1")


def test_without(world):
    world.ocsd.send_signal(signal.SIGKILL)
    world.ocsd.wait()
    code, out, err = world.ctl("map")
    check(code == 5 and len(err.splitlines()) == 1, "without ocsd: 5", out + err)


def main():
    world = World()
    try:
        if start(world):
            test_empty(world)
            commit(world)
            test_job(world)
            test_map(world)
            test_watch(world)
            test_advise(world)
            test_release(world)
            test_drain(world)
            test_pending(world)
            test_gone(world)
            test_watch_on(world)
            test_without(world)
    finally:
        world.stop()
    print("1..%d" % tests)


main()
