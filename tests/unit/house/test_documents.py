#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Documents are of this release, name what exists, and show what their commands draw.  TAP on stdout."""
import glob
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
PAGES = sorted(glob.glob(os.path.join(SOURCE, "doc/man*/*.[0-9]")))
TEXTS = ["README.md", "NEWS.md", "CONTRIBUTING.md", "tests/bench/README.md"] + sorted(
    os.path.relpath(path, SOURCE) for path in glob.glob(os.path.join(SOURCE, "doc/*.md")))
# Variables by which parts of slurm-ocs talk to each other within a process, a job's record or the tests.
INTERNAL = {"OCS_ATTEMPTS", "OCS_HELD", "SLURM_OCS_ASKED", "SLURM_OCS_GRAPH", "SLURM_OCS_MODEL", "SLURM_OCS_MODEL_DEMAND",
            "SLURM_OCS_MODEL_SHAPE", "SLURM_OCS_STRATEGY"}
# Files that are not of the tree: of an installation, of a build, or what a command of the text writes.
ELSEWHERE = re.compile(r"^(build|share/slurm-ocs|etc/(slurm|enroot|munge))(/|$)")


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as handle:
        return handle.read()


def release():
    """One version and one date in all places; programs say the version of configure.ac."""
    version = re.search(r"AC_INIT\(\[slurm-ocs\], \[([^]]*)\]\)", read("configure.ac")).group(1)
    said = subprocess.run([OCSCTL, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    result("programs have the version of configure.ac", {said} - {"slurm-ocs " + version})
    changelog = read("debian/changelog")
    result("so has debian/changelog", {re.match(r"slurm-ocs \(([^)]*)\)", changelog).group(1)} - {version})
    heading, date = re.search(r"^## (\S+) \(([^)]*)\)$", read("NEWS.md"), re.M).groups()
    result("and the first section of NEWS.md", {heading} - {version})
    stamp = re.search(r"^ -- .*>  (.*)$", changelog, re.M).group(1)
    day = subprocess.run(["date", "-ud", stamp, "+%F"], capture_output=True, text=True, check=True).stdout.strip()
    result("with the date of debian/changelog, or none yet", {date} - {day, "unreleased"})
    faults = set()
    for path in PAGES:
        head = re.search(r'^\.TH \S+ \d \S+ "slurm-ocs ([^"]*)"', open(path, encoding="utf-8").read(), re.M)
        if head and head.group(1) != version:
            faults.add("%s: %s" % (os.path.basename(path), head.group(1)))
    result("and man pages that name it", faults)


def environment():
    """Every variable of ours that a program, a plugin, a library or a script reads or sets is in a man page."""
    names, told = {}, "".join(open(path, encoding="utf-8").read() for path in PAGES)
    for top in ("src", "share", "etc", "doc/rings"):
        for where, _, files in os.walk(os.path.join(SOURCE, top)):
            for name in files:
                if not name.endswith((".c", ".h", ".py", ".in")) or name == "Makefile.in":
                    continue
                path = os.path.relpath(os.path.join(where, name), SOURCE)
                for variable in re.findall(r'"((?:SLURM_|SPANK_)?OCS_[A-Z_0-9]*[A-Z0-9])(?:=[^"]*)?"', read(path)):
                    names.setdefault(variable, path)
    result("man pages have every variable of the environment", {
        "%s (%s)" % (name, path) for name, path in names.items()
        if name not in INTERNAL and not re.search(r"(?<![A-Z_])(?:SPANK_)?%s(?![A-Z_])" % name, told)} |
        ({"hardly any was found"} if len(names) < 40 else set()))
    result("what is internal exists", INTERNAL - set(names))


def installed():
    """A man page names each file that is installed; models, prices and completions go by their commands."""
    told, files = "".join(open(path, encoding="utf-8").read() for path in PAGES).replace("\\-", "-"), set()
    for top in ("src", "share", "etc", "doc"):
        for where, _, names in os.walk(os.path.join(SOURCE, top)):
            if "Makefile.am" not in names:
                continue
            text = read(os.path.join(os.path.relpath(where, SOURCE), "Makefile.am")).replace("\\\n", " ")
            for kind, words in re.findall(r"^(\w+)_(?:DATA|SCRIPTS|PROGRAMS|LTLIBRARIES) *\+?= *(.*)", text, re.M):
                if not re.match(r"noinst|check|EXTRA|dist_(models|costs|bashcompletion)", kind):
                    files |= {os.path.basename(word) for word in words.split() if not word.startswith("$")}
    plugins = {"libslurm_ocs.la"}   # what topology and select share, a part of both
    result("man pages have every file that is installed", {
        name for name in files - plugins if not re.search(
            r"(?<![\w-])%s(?![\w])" % re.escape(name[:-3] if name.endswith(".la") else name), told)} |
        ({"hardly any was found"} if len(files) < 30 else set()))


def shipped():
    """A path in a document that begins like one of the tree is in the tree, or what it is built from."""
    tops = {name for name in os.listdir(SOURCE) if not name.startswith(".")}
    faults, seen = set(), 0
    for text in TEXTS:
        for word in re.findall(r"(?<![\w/.$-])((?:%s)/[\w./+-]*[\w/])" % "|".join(
                sorted(name for name in tops if os.path.isdir(os.path.join(SOURCE, name)))), read(text)):
            if ELSEWHERE.match(word) or "NAME" in word:
                continue
            seen += 1
            if not any(os.path.exists(os.path.join(SOURCE, word + built)) for built in ("", ".in", ".c")):
                faults.add("%s: %s" % (text, word))
        for word in re.findall(r"\]\(([\w./-]+)\)", read(text)):
            if not os.path.exists(os.path.join(SOURCE, os.path.dirname(text), word)):
                faults.add("%s: %s" % (text, word))
    result("documents name files that exist", faults | ({"hardly any was found"} if seen < 200 else set()))


def pictures():
    """Each picture is shown by a document, and that of a plan is what the command beside it draws."""
    shown = set(re.findall(r"!\[[^]]*\]\(([\w.-]+\.svg)\)", "".join(read(text) for text in TEXTS)))
    result("every picture is shown", {os.path.basename(path) for path in glob.glob(os.path.join(SOURCE, "doc/*.svg"))} ^ shown)
    words = re.search(r"`ocsctl (plan [^`]*) --svg plan\.svg`", read("doc/planning.md")).group(1).split()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.svg")
        subprocess.run([OCSCTL, *words, "--svg", path], check=True, capture_output=True)
        with open(path, encoding="utf-8") as handle:
            result("plan.svg is what its command draws", set() if handle.read() == read("doc/plan.svg") else {" ".join(words)})


def readme():
    """The table of options has those of sbatch, and each command that it shows for administrators exists."""
    options = set(re.findall(r'OCS_OPTION_\w+\] = \{ "([a-z-]+)"', read("src/scheduler/submit_options.c")))
    table = re.search(r"\| option of sbatch.*?\n\n", read("README.md"), re.S).group(0)
    told = set(re.findall(r"`--([a-z-]+)", "\n".join(row.split("|")[1] for row in table.split("\n") if row)))
    result("README.md has the options of sbatch", options ^ told)
    commands = set(re.findall(r"^  ([a-z][a-z-]*) ", subprocess.run(
        [OCSCTL, "help"], capture_output=True, text=True, check=True).stdout, re.M))
    named = set(re.findall(r"(?<![\w/-])ocsctl ([a-z][a-z-]+)\b", re.sub(r"`ocsctl`|\bocsctl\(1\)", "", read("README.md"))))
    result("and commands of ocsctl that exist", {name for name in named if name not in commands})


def comments():
    """A comment of a C file sends nobody to a file that is called something else by now."""
    named, there = {}, {"ocs_config.h", "nccl_symbols.h", "spank.h", "nccl.h", "mpi.h"}    # made by a build, or of others
    for top in ("src", "tests", "examples", "doc"):
        for where, _, files in os.walk(os.path.join(SOURCE, top)):
            there.update(files)
            for name in files:
                if name.endswith((".c", ".h")):
                    path = os.path.relpath(os.path.join(where, name), SOURCE)
                    for comment in re.findall(r"/\*.*?\*/", read(path), re.S):
                        for other in re.findall(r"(?<![\w<.%/-])(?:[\w-]+/)*([\w-]+\.[ch])\b", comment):
                            named.setdefault(other, path)
    assert len(named) > 20
    result("files that comments name", {"%s: %s" % (path, other) for other, path in named.items() if other not in there})


release()
environment()
comments()
installed()
shipped()
pictures()
readme()
sys.exit(end())
