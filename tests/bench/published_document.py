#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Whether doc/netsim-published.md says what its commands print.

    published_document.py --build BUILD [--graphs FOLDER] [--matrices FOLDER] [--page FILE] [--write] [FIGURE ...]

FIGURE is a script's first word and a figure, as netsim:11, opus:oracle or mfabric:15; without any all are
run.  A line "Command: `netsim_published.py 11`." of the document begins what that command prints: the tables
below it, up to the next heading or command.  Differences are printed, and with --write put right.

The first table of the document counts published points and those that are met within 20 %: a number in
parentheses behind a number, or in a column "published" behind its column.  It is counted again each time."""
import argparse
import difflib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../doc/netsim-published.md")
COMMAND = re.compile(r"^Command: `(netsim|opus|mfabric)_published\.py (\w+)`")
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"


def blocks(lines):
    """Tables, each (first line, line after the last)."""
    found, first = [], None
    for k, line in enumerate(list(lines) + [""]):
        if line.startswith("|") and first is None:
            first = k
        if not line.startswith("|") and first is not None:
            found.append((first, k))
            first = None
    return found


def sections(lines):
    """{(script, figure): (first line, line after the last)}"""
    found, open_one = {}, None
    for k, line in enumerate(list(lines) + ["# end"]):
        match = COMMAND.match(line)
        if open_one and (match or line.startswith("#")):
            found[open_one[0]] = (open_one[1], k)
            open_one = None
        if match:
            open_one = (match.groups(), k + 1)
    return found


def printed(args, script, figure):
    words = [sys.executable, os.path.join(HERE, script + "_published.py"), "--netsim",
             os.path.join(args.build, "src/netsim/ocs-netsim"), "--ocsctl", os.path.join(args.build, "src/ocsctl/ocsctl")]
    for name, folder in (("--graphs", args.graphs if script == "netsim" else None),
                         ("--matrices", args.matrices if script == "mfabric" else None)):
        words += [name, folder] if folder else []
    done = subprocess.run(words + [figure], text=True, capture_output=True)
    if done.returncode:
        sys.exit("%s %s: %s" % (script, figure, done.stderr))
    return [line for line in done.stdout.splitlines()
            if not re.match(r"(#+ )?(Figure \w+|[A-Z][a-z]+|A step of known length)$", line)]


def section_update(part, says):
    """The lines of a section with what its command says now; None where they do not fit together."""
    ours, theirs = blocks(part), blocks(says)
    if len(ours) != len(theirs):
        return None
    out = list(part)
    for (first, after), (begin, end) in reversed(list(zip(ours, theirs))):
        out[first:after] = says[begin:end]
    for line in says:       # what is no table stands in a line of its own that begins with the same words
        if line and not line.startswith("|"):
            places = [k for k, old in enumerate(out) if old[:12] == line[:12]]
            if len(places) != 1:
                return None
            out[places[0]] = line
    return out


def number(cell):
    match = re.match(r"\**(%s)" % NUMBER, cell)
    return float(match.group(1)) if match else None


def points(lines):
    """(published points, those that are met within 20 %) of the tables in LINES."""
    pairs = []
    for first, after in blocks(lines):
        head, rows = lines[first].split("|")[1:-1], lines[first + 2:after]
        for row in (line.split("|")[1:-1] for line in rows):
            for k, cell in enumerate(cell.strip() for cell in row):
                inside = re.match(r"\**(%s).* ?\((%s)( %%)?\)" % (NUMBER, NUMBER), cell)
                if inside:
                    pairs.append((float(inside.group(1)), float(inside.group(2))))
                name = head[k].strip() if k < len(head) else ""
                if k and name.startswith("published") and number(cell) is not None:
                    before = number(row[k - 1].strip())
                    pairs += [(before, number(cell))] if before is not None else []
    near = sum(abs(here - there) <= .2 * abs(there) for here, there in pairs)
    return len(pairs), near


def summary_update(lines, found):
    """Counts again, in the first table: | figure | command | points | within 20 % | ..."""
    first, after = blocks(lines)[0]
    for k in range(first + 2, after):
        cells = lines[k].split("|")
        match = re.match(r" `(\w+)_published\.py (\w+)` ", cells[2])
        if match and match.groups() in found and match.group(2) != "assumptions":
            begin, end = found[match.groups()]
            cells[3], cells[4] = (" %d " % count for count in points(lines[begin:end]))
            lines[k] = "|".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--graphs")
    parser.add_argument("--matrices")
    parser.add_argument("--page", default=PAGE)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("figure", nargs="*")
    args = parser.parse_args()
    with open(args.page, encoding="utf-8") as handle:
        was = handle.read().splitlines()
    lines, found = list(was), sections(was)
    wanted = [tuple(word.split(":")) for word in args.figure] or list(found)
    if set(wanted) - set(found):
        sys.exit("the document has no command for %s" % (set(wanted) - set(found)))
    for key in sorted(wanted, key=lambda key: -found[key][0]):      # from the end, so that lines keep their numbers
        first, after = found[key]
        part = section_update(lines[first:after], printed(args, *key))
        if part is None:
            sys.exit("%s_published.py %s prints other tables than the document has" % key)
        for line in difflib.unified_diff(lines[first:after], part, "document", "%s_published.py %s" % key, n=0, lineterm=""):
            print(line, flush=True)
        lines[first:after] = part
    summary_update(lines, sections(lines))
    if lines != was and args.write:
        with open(args.page, "w", encoding="utf-8") as handle:
            handle.write("\n".join(lines) + "\n")
    elif lines != was:
        sys.exit("doc/netsim-published.md is not what its commands print: give --write")


if __name__ == "__main__":
    main()
