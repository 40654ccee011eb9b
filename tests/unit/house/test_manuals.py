#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The man pages, --help, the completion and the programs say the same.  TAP on stdout."""
import json
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.environ["OCS_BUILD_DIR"]
SOURCE = os.environ["OCS_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests/unit"))
from tap import end, faultless as result  # noqa: E402

OCSCTL = os.path.join(BUILD, "src/ocsctl/ocsctl")
SIM = os.path.join(BUILD, "src/sim/ocs-sim")
NETSIM = os.path.join(BUILD, "src/netsim/ocs-netsim")
REPLAY = os.path.join(BUILD, "src/rails/ocs-replay")
TORUS = "torus cubes:2x1x1 cube:4x4x4 tile:2x2x1"


def run(*words, stdin="", status=0):
    done = subprocess.run(words, input=stdin, text=True, capture_output=True, check=False)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout or done.stderr


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as handle:
        return handle.read()


def plain(page):
    """Roff without the escapes and fonts that stand in options."""
    return re.sub(r'"', "", re.sub(r"\\f[A-Z]|\\&", "", page.replace("\\-", "-").replace("\\(dq", "")))


def part(page, heading):
    """A section of a man page."""
    return re.search(r"^\.S[Hh] %s\n(.*?)(?=^\.S[Hh] |\Z)" % heading, page, re.M | re.S).group(1)


def options(help_text):
    """{option: it takes a value}."""
    return {name: bool(value.strip("=[") or value == "=") for name, value in
            re.findall(r"(?<![\w-])(--[a-z][a-z-]*)(?:(?: |\[=)([A-Z][\w:,./|]*|[a-z]+\|[a-z]+))?", help_text)}


def completed(program):
    """The options that its completion names."""
    return set(re.findall(r"--[a-z][a-z-]*", re.sub(r"^\s*#.*", "", read("etc/bash-completion", program), flags=re.M)))


def headings(text):
    """The options that stand in the lines after .TP."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(re.findall(r"^\.TP\n(.*)", text, re.M))))


def ocsctl_options():
    page = plain(read("doc/man1/ocsctl.1"))
    commands = re.findall(r"^  ([a-z][a-z-]*) ", run(OCSCTL, "help"), re.M)
    lines = re.findall(r"^\.TP\n(.*)", part(page, "COMMANDS"), re.M)
    result("ocsctl(1) has every command", {name for name in commands if not any(
        re.match(r"\.\w+ .*\b%s\b" % name, line) for line in lines)})
    every = {}
    for name in commands:
        if name != "help":
            every.update(options(run(OCSCTL, name, "--help").split("Options:")[1]))
    result("ocsctl(1) has every option", {name for name in every if not re.search(
        r"%s(?![\w-])" % name, part(page, "OPTIONS") + part(page, "COMMANDS"))})
    result("ocsctl has every option of its man page",
           headings(part(page, "OPTIONS")) - set(every) - {"--version"})
    words = completed("ocsctl")
    result("the completion knows which options have a value",
           {name for name, value in every.items() if value and name != "--watch"} - words)
    result("and no others", words - set(every) - {"--version"})


def program_options(program, path):
    page = plain(read("doc/man1/%s.1" % program))
    every = options(run(path, "--help").split("\n", 1)[1])
    result("%s(1) has every option" % program, {name for name in every if not re.search(
        r"%s(?![\w-])" % name, part(page, "OPTIONS"))})
    result("%s has every option of its man page" % program, headings(part(page, "OPTIONS")) - set(every))
    words = completed(program)
    result("the completion of %s has no others" % program, words - set(every))


def every_program():
    """Every program that is installed has a page of its name; those of section 8 have the options of --help."""
    for folder in sorted(os.listdir(os.path.join(SOURCE, "src"))):
        if not os.path.exists(os.path.join(SOURCE, "src", folder, "Makefile.am")):
            continue
        for kind, names in re.findall(r"^(\w+)_PROGRAMS *\+?= *(.*)", read("src", folder, "Makefile.am"), re.M):
            if kind.startswith(("noinst", "check", "EXTRA")):
                continue
            for name in names.split():
                pages = [page for page in ("doc/man1/%s.1" % name, "doc/man8/%s.8" % name)
                         if os.path.exists(os.path.join(SOURCE, page))]
                if pages != ["doc/man8/%s.8" % name]:
                    result("%s has a page" % name, set() if pages else {"it has none"})
                    continue
                text = run(os.path.join(BUILD, "src", folder, name), "--help")
                told = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", "\n".join(
                    re.findall(r"^ +-.*", text, re.M))))
                page = set(re.findall(r"Fl (?:Fl |-)([a-z][a-z-]*)", "\n".join(
                    re.findall(r"^\.It Fl .*", read(pages[0]), re.M))))
                result("%s(8) has the options of --help, and no others" % name,
                       (told ^ page) - {"help", "version"} | ({"no options"} if len(told) < 4 else set()))


def members(value):
    """Names of members down to the second level, where lists of objects are."""
    names = set(value)
    for inner in value.values():
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            names |= set(inner[0])
    return names


def ocsctl_json():
    page = plain(part(read("doc/man1/ocsctl.1"), "JSON"))
    told = {}
    for names, text in re.findall(r"^\.TP\n\.\w+ ([^\n]*)\n(.*?)(?=^\.TP|\Z)", page, re.M | re.S):
        for name in re.split(r"[ ,]+", names):
            told[name] = text
    placement = run(OCSCTL, "place", "4x4x4", "--fabric", TORUS, "--json")
    plan = run(OCSCTL, "plan", "--servers", "8", "--degree", "4", "--json")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "w", encoding="utf-8") as handle:
            handle.write("BlockName=b0 Nodes=n[0-63]\n")
        got = {
            "check": run(OCSCTL, "check", os.path.join(SOURCE, "examples/ocs-torus.yaml"), "--json"),
            "migrate": run(OCSCTL, "migrate", path, "--cube", "4x4x4", "--json"),
            "place": placement, "plan": plan,
            "fold": run(OCSCTL, "fold", "4x4x8_twisted", "--fabric", TORUS, "--json"),
            "verify": run(OCSCTL, "verify", "-", "--fabric", TORUS, "--json", stdin=placement),
            "forward": run(OCSCTL, "forward", "-", "--json", stdin=plan),
            "optimise": run(OCSCTL, "optimise", os.path.join(SOURCE, "share/models/bert.yaml"), "--servers", "2", "--json"),
            "region": run(OCSCTL, "region", "plan", "--matrix", "-", "--json", stdin="[[0,1],[1,0]]"),
            "nccl-check": run(OCSCTL, "nccl-check", "-", "--json", stdin="x", status=1).split("\n")[0],
            "advise": run(OCSCTL, "advise", "4x4", "--fabric", TORUS, "--map", "-", "--json",
                          stdin='{"nodes":[],"jobs":[]}'),
            "advise fabric": run(OCSCTL, "advise", "fabric", os.path.join(SOURCE, "share/models/resnet50.yaml"), "--servers", "2",
                                 "--costs", os.path.join(SOURCE, "share/costs/topoopt.yaml"), "--json"),
            "version": run(OCSCTL, "version", "--json"),
        }
    for command, text in got.items():
        shown = json.loads(text)
        names = set(shown) if command == "check" else members(shown)
        result("ocsctl(1) has the JSON of %s" % command, {
            name for name in names if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(name),
                                                    told[command.split()[0]])})


BASE = """version: 1
ocsd: {state: /var/lib/ocsd}
limits: {burst: 60}
timeouts: {poll: 30s}
policies: {requeue_limit: 3}
nccl: {graph_file: true}
switches:
- {name: "o-[x,y,z]-[0-1]-[0-1]", driver: scpi, address: "h:{index + 1}", size: 16}
- {name: "d-[0-1]", driver: scpi, address: "d{index}:1", size: 16}
- {name: "e-[0-1]", driver: scpi, address: "e{index}:1", size: 16}
- {name: "s-[0-1]", driver: scpi, address: "s{index}:1", size: 64, moves: true}
- {name: "g-[0-1]", driver: scpi, address: "g{index}:1", size: 16}
- {name: "r-[0-1]", driver: scpi, address: "r{index}:1", size: 16}
fabrics:
- name: pod
  kind: torus
  partitions: a
  cube: 2x2x2
  cubes: [{name: c0, nodes: "n[0-7]"}]
  ports:
    switch: o-{dim}-{a}-{b}
    port: sign + 1
    map: [{cube: c0, dim: x, position: [0, 0], sign: "+", switch: o-x-0-0, port: 1}]
- {name: old, kind: static, partitions: b, extents: 1x1x1, nodes: s0, interfaces: [
    {direction: +x, name: a}, {direction: -x, name: b}, {direction: +y, name: c}, {direction: -y, name: d},
    {direction: +z, name: e}, {direction: -z, name: f}]}
- name: ring
  kind: direct
  partitions: c
  nodes: d[0-1]
  degree: 2
  interfaces: [{name: e0}, {name: e1}]
  forwarding: {address: 10.1.0.0/16}
  ports:
    switch: d-{interface}
    port: server + 1
    map: [{node: d0, interface: 0, switch: d-0, port: 1}]
  look_ahead:
    ports: {switch: "e-{interface}", port: server + 1}
    select: {switch: "s-{interface}", port: 3 * server + 1}
- {name: mixed, kind: region, partitions: e, nodes: g0, degree: 2, interfaces: [{name: o0}, {name: o1}],
   ports: {switch: g-0, port: interface + 1}}
- {name: rail, kind: rails, partitions: d, nodes: r0, rails: 2, ports: {switch: "r-{interface}", port: 1}}
"""
# Where an unknown key makes the reader say which keys there are.
PLACES = [
    ("version: 1\n", "version: 1\nQQ: 1\n"), ("ocsd: {", None), ("limits: {", None), ("timeouts: {", None),
    ("policies: {", None), ("nccl: {", None), ("- {name: \"o-", "- {QQ: 1, name: \"o-"),
    ("  cube: 2", "  QQ: 1\n  cube: 2"), ("extents:", "QQ: 1, extents:"), ("  degree: 2\n", "  QQ: 1\n  degree: 2\n"),
    ("rails: 2", "QQ: 1, rails: 2"), ("nodes: g0", "QQ: 1, nodes: g0"), ("cubes: [{", None),
    ("    port: sign", "    QQ: 1\n    port: sign"), ("map: [{cube", "map: [{QQ: 1, cube"),
    ("map: [{node", "map: [{QQ: 1, node"), ("  interfaces: [{", None), ("{name: o0}", "{QQ: 1, name: o0}"), ("{direction: +x", "{QQ: 1, direction: +x"), ("forwarding: {", None),
    ("  look_ahead:\n", "  look_ahead:\n    QQ: 1\n"), ("    ports: {", None), ("    select: {", None),
]


def yaml_keys():
    page = read("doc/man5/ocs.yaml.5")
    told = set()
    for line in re.findall(r"^\.It Cm (.*)", page, re.M):
        told |= set(re.findall(r"[a-z_]+", line))
    told |= set(re.findall(r"^\.Cm ([a-z_]+)", page, re.M))
    items = set(re.findall(r"^\.It Cm ([a-z_]+)", page, re.M))
    keys, faults = set(), set()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ocs.yaml")

        def check(text, status):
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
            return run(OCSCTL, "check", path, status=status)
        check(BASE, 0)
        for old, new in PLACES:
            said = check(BASE.replace(old, new or old + "QQ: 1, ", 1), 2)
            known = re.search(r'has no key "QQ"; it has: (.*)', said)
            assert known, (old, said)
            keys |= set(known.group(1).split(", "))
    faults = keys - told
    result("ocs.yaml(5) has every key", faults)
    result("ocs.yaml has every key of its man page", items - keys - {"requeue", "cancel", "ignore"})


def plugstack_arguments():
    takes = re.search(r"spank_ocs\.so takes (.*?)\"", read("src/plugins/spank/settings.c")).group(1)
    known = set(re.findall(r"([a-z_]+)=", takes))
    read_by = set(re.findall(r'IS\("([a-z_]+)"\)', read("src/plugins/spank/settings.c")))
    page = part(read("doc/man8/spank_ocs.8"), "ARGUMENTS")
    told = set(re.findall(r"^\.It Cm ([a-z_]+)", page, re.M))
    result("spank_ocs(8) has the arguments that are read", (known ^ told) | (known ^ read_by))
    table = set(re.findall(r'OCS_OPTION_\w+\] = \{ "([a-z-]+)"', read("src/scheduler/submit_options.c")))
    page = part(read("doc/man8/spank_ocs.8"), "OPTIONS")
    result("and the options", table ^ set(re.findall(r"^\.It Fl Fl ([a-z-]+)", page, re.M)))


def functions_missing(line):
    """Paths in LINE that do not exist, and words after `FILE.c` that no file of LINE has as a function."""
    words = re.findall(r"`([^`]+)`", line)
    paths = [word for word in words if "NAME" not in word and
             re.match(r"(src|tests|doc|etc|scripts|examples|debian)/[^ *{]*$", word)]
    missing = {path for path in paths if not os.path.exists(os.path.join(SOURCE, path))}
    code = "".join(read(path) for path in paths if path.endswith(".c") and path not in missing)
    for word in re.findall(r"`([a-z0-9_]+)`", line[line.find(".c`"):] if code else ""):
        if not re.search(r"\b%s[([]" % word, code):
            missing.add(word)
    return missing


def architecture():
    for page in ("doc/architecture.md", "CONTRIBUTING.md"):
        faults = set()
        for line in read(page).split("\n"):
            faults |= {"%s: %s" % (word, line.strip()) for word in functions_missing(line)}
        result(page + " names files and functions that exist", faults)
    faults = set()
    for row in read("doc/model.md").split("## Steps and code")[1].split("## Rules")[0].split("\n")[3:]:
        column = (row + "||").split("|")[2]
        code = ""
        for path in re.findall(r"`([a-z0-9_/]+\.c)[:`]", column):
            files = [found for found in ("src/" + path, "src/plugins/" + path, "src/plugins/select/" + path)
                     if os.path.exists(os.path.join(SOURCE, found))]
            if files:
                code += read(files[0])
            else:
                faults.add(path)
        faults |= {name for name in re.findall(r"[:`]([a-z0-9_]+)`", column)
                   if not re.search(r"\b%s\b" % name, code)}
    result("so does doc/model.md", faults)


def picture():
    """The letters of doc/architecture.svg: which programs include headers of a folder themselves."""
    picture_text = read("doc/architecture.svg")
    letters = dict(re.findall(r">([a-z]+)</text>\n<circle[^>]*>\n<text[^>]*>([A-Z])</text>", picture_text))
    drawn = re.findall(r">([a-z]+)</text>\n<text[^>]*>[^<]*</text>\n<text[^>]*>([A-Z](?: [A-Z])*)</text>", picture_text)
    used = {}
    for folder, letter in letters.items():
        for where, _, names in os.walk(os.path.join(SOURCE, "src", folder)):
            for name in names:
                if name.endswith((".c", ".h")):
                    for other in re.findall(r'#include "src/([a-z]+)/',
                                            read(os.path.relpath(where, SOURCE), name)):
                        used.setdefault(other, set()).add(letter)
    result("doc/architecture.svg shows which programs include what", {
        "%s: drawn %s, is %s" % (folder, users, " ".join(sorted(used.get(folder, "none"))))
        for folder, users in drawn if set(users.split()) != used.get(folder, set())} |
        ({"it is drawn in another way"} if len(letters) < 6 or len(drawn) < 13 else set()))


ocsctl_options()
program_options("ocs-sim", SIM)
program_options("ocs-netsim", NETSIM)
program_options("ocs-replay", REPLAY)
every_program()
architecture()
picture()
ocsctl_json()
yaml_keys()
plugstack_arguments()
sys.exit(end())
