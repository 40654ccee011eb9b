#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Which folder of src/ uses which, by includes and by the symbols of the built objects: an arrow
that runs up, a plugin that uses another plugin's files, a Slurm header or symbol outside
src/plugins, and a circle of too many files inside a room are faults.  TAP on stdout.

A folder uses those of lower lines only.  Folders of one line do not use each other.  To add a
folder, put it into the order; to have an arrow run up for a while, name it in MEND with what
removes it.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("OCS_SOURCE_DIR", ".")
BUILD = os.environ.get("OCS_BUILD_DIR", "build/gcc")
NM = os.environ.get("NM", "nm").split()

# From below to above.
FOLDERS = """
util
fabric protocol
switch
config
fold plan nccl
place forward model
rails
moe
layout
advice policy netsim
scheduler ocsd optimise
plugins/compat
plugins/cli_filter plugins/job_submit plugins/select plugins/spank plugins/topology
ocsctl node sim emulator
"""
# The rooms of ocsd; "top" are the files of the folder itself: main, settle, reload ...
OCSD = """
state
store
jobs
ports
switches
protocol
metrics
ops
top
"""
# (file, what it uses): what removes it.
MEND = {}
# Of the C library; a shim that is preloaded has them, too.
INTERPOSED = {"connect", "accept", "accept4", "dlsym"}
CIRCLE_MAX = 5  # files of a room of ocsd that call each other in a circle

SLURM_HEADER = re.compile(r"(slurm/|src/(common|slurmctld|slurmd|stepmgr|interfaces|api|database)/)")
SLURM_SYMBOL = re.compile(r"(slurm_[a-z]|xmalloc$|xfree$|xstrdup$|job_record_|node_record_|slurmctld_)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)


def ranks(order):
    return {name: rank for rank, line in enumerate(order.split("\n")) for name in line.split()}


def folder_of(path):
    """src/util/text.c -> util; src/plugins/select/hold.c -> plugins/select"""
    words = path.split("/")[1:-1]
    return "/".join(words[:2]) if words[:1] == ["plugins"] else "/".join(words[:1])


def room_of(path):
    """src/ocsd/jobs/job.c -> jobs; src/ocsd/main.c -> top; elsewhere None"""
    words = path.split("/")
    return None if words[1] != "ocsd" else words[2] if len(words) > 3 else "top"


def sources(top):
    found = []
    for folder, _, names in os.walk(os.path.join(top, "src")):
        found += [os.path.relpath(os.path.join(folder, name), top) for name in names if name[-2:] in (".c", ".h")]
    return sorted(found)


def objects(build, known):
    """{object: its source}, of sources that are there: what older trees left is none of them."""
    found, tests = {}, {}
    for folder, _, names in os.walk(os.path.join(build, "src")):
        for name in (name for name in names if name.endswith(".o")):
            path = os.path.join(folder, name)
            source = os.path.relpath(path, build).replace("/.libs/", "/")[:-2] + ".c"
            # automake names one "test_x-file.o" that a test compiles with flags of its own
            plain = os.path.join(os.path.dirname(source), os.path.basename(source).split("-", 1)[-1])
            if source in known:
                found[path] = source
            elif plain in known:
                tests[path] = plain
    seen = set(found.values())
    found.update((path, source) for path, source in tests.items() if source not in seen)
    return found


def nm(paths):
    done = subprocess.run(NM + ["-A", "-P", "-g"] + paths, text=True, capture_output=True, check=True)
    return done.stdout


def symbols(of, listing):
    """Who defines and who needs what, {symbol: {source}} twice, from the output of nm -A -P."""
    defines, needs = collections.defaultdict(set), collections.defaultdict(set)
    for line in listing.splitlines():
        path, symbol, kind = line.split()[:3]
        (needs if kind in "Uw" else defines)[symbol].add(of[path.rstrip(":")])
    return defines, needs


class Tree:
    """What a tree includes and what its objects call."""

    def __init__(self, source, build, lister=nm):
        self.source = source
        self.files = sources(source)
        self.includes = []
        for name in self.files:
            with open(os.path.join(source, name), encoding="utf-8") as handle:
                self.includes += [(name, header) for header in INCLUDE.findall(handle.read())]
        self.objects = objects(build, set(self.files))
        self.defines, self.needs = symbols(self.objects, lister(sorted(self.objects)) if self.objects else "")
        self.calls = collections.defaultdict(set)
        for symbol, users in self.needs.items():
            owners = self.defines.get(symbol, set())
            if len(owners) == 1 and symbol not in INTERPOSED:       # main, plugin_name: not ours to follow
                owner = next(iter(owners))
                for user in users - owners:
                    self.calls[user, owner].add(symbol)

    def uses(self):
        """(file, file, how) of everything that one file of src/ uses of another."""
        for name, header in self.includes:
            if header in self.files:
                yield name, header, "includes " + header
        for (user, owner), names in sorted(self.calls.items()):
            yield user, owner, "calls %s of %s" % (min(names), owner)


def arrows_up(tree, of, order, where):
    """Faults: a file uses one of a folder that is not below its own."""
    rank = ranks(order)
    faults = set()
    for user, owner, how in tree.uses():
        above, below = of(user), of(owner)
        if above is None or below is None or above == below or (user, owner) in MEND:
            continue
        unknown = [name for name in (above, below) if name not in rank]
        if unknown:
            faults.add("%s%s has no place in the order of %s" % (where, unknown[0], sys.argv[0]))
        elif rank[above] <= rank[below]:
            faults.add("%s: %s%s is not above %s%s, but the file %s" % (user, where, above, where, below, how))
    return faults


def plugin_faults(tree):
    faults = {"%s: includes %s by a relative path" % use for use in tree.includes if use[1].startswith((".", "/"))}
    for user, header in tree.includes:
        other = folder_of(header) if header.startswith("src/plugins/") else None
        if other and user.startswith("src/plugins/") and other not in (folder_of(user), "plugins/compat") and \
                (user, header) not in MEND:
            faults.add("%s: includes %s of another plugin" % (user, header))
    return faults


def slurm_faults(tree):
    faults = {"%s: includes Slurm's %s outside src/plugins" % use for use in tree.includes
              if not use[0].startswith("src/plugins/") and SLURM_HEADER.match(use[1]) and use[1] not in tree.files}
    for symbol, users in tree.needs.items():
        if SLURM_SYMBOL.match(symbol) and symbol not in tree.defines:
            faults |= {"%s: needs %s of Slurm outside src/plugins" % (user, symbol) for user in users
                       if not user.startswith("src/plugins/")}
    return faults


def circles(tree, room):
    """The files of ROOM (of folder_of or room_of) in groups that call each other in a circle."""
    names = [name for name in tree.files if name.endswith(".c") and room(name)]
    after = {name: [owner for (user, owner) in tree.calls if user == name and owner in names] for name in names}
    number, low, stack, found = {}, {}, [], []

    def visit(name):    # Tarjan
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in after[name]:
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            group = stack[stack.index(name):]
            del stack[stack.index(name):]
            found.append(sorted(group))

    for name in names:
        if name not in number:
            visit(name)
    return sorted(found, key=len, reverse=True)


def circle_faults(tree):
    faults, largest = set(), []
    for room in sorted(ranks(OCSD)):
        groups = circles(tree, lambda name, room=room: room_of(name) == room)
        if groups and len(groups[0]) > 1:
            largest.append("ocsd/%s: %d" % (room, len(groups[0])))
        for group in groups:
            if len(group) > CIRCLE_MAX:
                faults.add("ocsd/%s: %d files call each other in a circle, more than %d: %s" %
                           (room, len(group), CIRCLE_MAX, " ".join(os.path.basename(name) for name in group)))
    if tree.source == SOURCE:
        print("# largest circles inside a room: %s" % (", ".join(largest) or "none"))
    return faults


def blind_faults(tree):
    """Nothing is found where nothing is looked at: each folder needs objects, but plugins, which are
    built only with Slurm."""
    seen = set(tree.objects.values())
    rooms = collections.defaultdict(list)
    for name in tree.files:
        if name.endswith(".c") and not name.startswith("src/plugins/"):
            rooms[os.path.dirname(name)].append(name)
    return {"%s: no object of it was found: build it first" % room for room, names in rooms.items()
            if not seen & set(names)}


def mend_faults(tree):
    used = {(user, owner) for user, owner, _ in tree.uses()}
    return {"%s uses %s no more: strike it from MEND" % pair for pair in MEND if pair not in used}


def all_faults(tree):
    return {
        "every folder has objects": blind_faults(tree),
        "no folder of src/ uses one above it": arrows_up(tree, folder_of, FOLDERS, "src/"),
        "no room of ocsd uses one above it": arrows_up(tree, room_of, OCSD, "ocsd/"),
        "no plugin uses another one's files": plugin_faults(tree),
        "Slurm is needed in src/plugins only": slurm_faults(tree),
        "no room of ocsd has a large circle": circle_faults(tree),
        "what is still to be mended is": mend_faults(tree),
    }


BAD = {
    "src/util/text.c": ('#include "src/place/place.h"\n', "ocs_text T 0 0\nocsd_job U\n"),
    "src/place/place.h": ("", None),
    "src/place/place.c": ("", "ocs_place T 0 0\nslurm_list_create U\n"),
    "src/fabric/fabric.c": ("#include <slurm/slurm.h>\n", "ocs_fabric T 0 0\nocs_protocol U\n"),
    "src/protocol/client.c": ('#include "src/slurmctld/locks.h"\n', "ocs_protocol T 0 0\n"),
    "src/fold/unbuilt.c": ("", None),
    "src/odd/odd.c": ("", "ocs_odd T 0 0\nocs_text U\n"),
    "src/plugins/spank/settings.h": ("", None),
    "src/plugins/select/hold.c": ('#include "../spank/settings.h"\n', "hold T 0 0\nslurm_free U\n"),
    "src/plugins/cli_filter/ring.c": ('#include "src/plugins/spank/settings.h"\n', "ring T 0 0\n"),
    "src/ocsd/jobs/job.c": ("", "ocsd_job T 0 0\nocsd_reply U\n"),
    "src/ocsd/ops/apply.c": ("", "ocsd_reply T 0 0\nocsd_job U\n"),
}
BAD.update(("src/ocsd/store/more%d.c" % i, ("", "job%d T 0 0\njob%d U\n" % (i, i % 6 + 1))) for i in range(1, 7))
CAUGHT = [
    ("every folder has objects", "src/fold:"),
    ("no folder of src/ uses one above it", "src/util/text.c: src/util is not above src/place, but the file includes"),
    ("no folder of src/ uses one above it", "src/util/text.c: src/util is not above src/ocsd, but the file calls ocsd_job"),
    ("no folder of src/ uses one above it", "src/fabric/fabric.c: src/fabric is not above src/protocol, but"),
    ("no folder of src/ uses one above it", "src/odd has no place in the order"),
    ("no room of ocsd uses one above it", "src/ocsd/jobs/job.c: ocsd/jobs is not above ocsd/ops, but the file calls"),
    ("no folder of src/ uses one above it", "src/plugins/cli_filter/ring.c: src/plugins/cli_filter is not above"),
    ("no plugin uses another one's files", "src/plugins/select/hold.c: includes ../spank/settings.h by a relative"),
    ("no plugin uses another one's files", "src/plugins/cli_filter/ring.c: includes src/plugins/spank/settings.h of"),
    ("Slurm is needed in src/plugins only", "src/place/place.c: needs slurm_list_create"),
    ("Slurm is needed in src/plugins only", "src/fabric/fabric.c: includes Slurm's slurm/slurm.h"),
    ("Slurm is needed in src/plugins only", "src/protocol/client.c: includes Slurm's src/slurmctld/locks.h"),
    ("no room of ocsd has a large circle", "ocsd/store: 6 files call each other in a circle"),
]


def self_test():
    """A tree with one fault of each kind: what is not found there, and what is found too much."""
    with tempfile.TemporaryDirectory() as top:
        for name, (text, table) in BAD.items():
            for path, content in ((name, text), ("build/" + name[:-2] + ".o", table)):
                if content is None:
                    continue
                os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
                with open(os.path.join(top, path), "w", encoding="utf-8") as handle:
                    handle.write(content)

        def lister(paths):
            lines = []
            for path in paths:
                with open(path, encoding="utf-8") as handle:
                    lines += ["%s: %s" % (path, line) for line in handle.read().splitlines()]
            return "\n".join(lines)

        found = all_faults(Tree(top, os.path.join(top, "build"), lister))
    faults = set()
    for name, begin in CAUGHT:
        if not any(fault.startswith(begin) for fault in found[name]):
            faults.add("not caught: " + begin)
    known = tuple(begin for _, begin in CAUGHT)
    for name, some in found.items():
        if name != "what is still to be mended is":
            faults |= {"too much: " + fault for fault in some if not fault.startswith(known)}
    return faults


def main():
    number = bad = 0
    checks = {"a tree with faults is refused": self_test()}
    checks.update(all_faults(Tree(SOURCE, BUILD)))
    for name, faults in checks.items():
        number += 1
        bad += bool(faults)
        print("%sok %d - %s" % ("not " if faults else "", number, name))
        for fault in sorted(faults):
            print("# " + fault)
    print("1..%d" % number)
    return bool(bad)


sys.exit(main())
