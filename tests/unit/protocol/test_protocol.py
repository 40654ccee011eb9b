#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""The names on the wire: src/protocol/names.h has those of version 1 to the letter, doc/protocol.md
describes each, and no other source spells one.  TAP on stdout."""
import glob
import os
import re
import sys

SOURCE = os.environ["OCS_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests/unit"))
from tap import end, faultless as result  # noqa: E402

# Version 1 of the protocol: a name may be added, and never change.
VERSION_1 = {
    "OP": "apply commit drain end fail gates gone hello nodes pending prepare present reconcile region release "
          "resume routes show subscribe topo unable unheard",
    "EVENT": "circuit_failed circuit_restored degraded drain job_failed plan ready realised released "
             "revoked superseded switch topo_lost",
    "SHOW": "circuit cube fabric history job nodes pending phases port region switch",
    "FIELD": "a a_label address after age_ms agent_key asymmetric b b_label backward baseline before boot challenge "
             "change_ms changes circuits code conn controller credential cubes demand difference digest drained drains "
             "drift ended epoch error event excess expect expected extents fabric failed fault "
             "forgotten forward_macs forwarding gone group groups held history host hosts id in in_dbm interface "
             "job jobs kept key kind label last last_arrivals last_read layer layers loss macs max_epoch max_job "
             "method microbatch mispredicted missing mode moe name never_heard next next_port nic_ports nics node nodes nonce ok op "
             "out out_dbm owner partition patches pending phases placement plan port ports proof provisioned "
             "quarantine rail rails rate ready realised reason refused region released retry_ms revision "
             "second section sections seen seq servers set shape since size slurmctld slurmctld_yaml source stage stands "
             "state status superseded switch switches term tested text time tokens took_ms top topo transaction uid "
             "uncertain unheard unknown unsure user waited_ms what who yaml",
}
# What reads and writes lines of the protocol.  ocsctl prints JSON of its own as well.
SPEAKERS = ["src/ocsd", "src/scheduler", "src/plugins", "src/node", "src/ocsctl"]
MEMBER = re.compile(r"\b(?:ocs_field(?:_\w+)?|json_object_object_(?:add|get|get_ex|del))\(\s*"
                    r"[^;\"(),]*(?:\([^()]*\)[^;\"(),]*)*,\s*\"(\w+)\"")
ON_WIRE = re.compile(r"\b(?:ocs_field(?:_\w+)?\(\s*\w+|"
                     r"json_object_object_(?:add|get|get_ex|del)\(\s*(?:request|line|event)),\s*\"(\w+)\"")
# The value of a field that names an operation, an event or a reply of show.
VALUE = [
    re.compile(r"\bocs_(?:request|event)_(?:new|job)\(\s*\"(\w+)\""),
    re.compile(r"OCS_FIELD_(?:OP|EVENT),\s*(?:json_object_new_string\(\s*)?\"(\w+)\""),
    re.compile(r"\bstrcmp\(\s*op,\s*\"(\w+)\""),
    re.compile(r"\bocs_ctl_ask\(\s*\w+,\s*\"(\w+)\""),
    re.compile(r"\"(op)\""),
]


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as handle:
        return handle.read()


def sources():
    for folder in SPEAKERS:
        for path in glob.glob(os.path.join(SOURCE, folder, "**", "*.[ch]"), recursive=True):
            yield os.path.relpath(path, SOURCE), read(path)


def names_of(header):
    """{group: {macro: text}}."""
    found = {group: {} for group in VERSION_1}
    for group, macro, text in re.findall(r"^#define OCS_([A-Z]+)_(\w+) \"(\w+)\"$", header, re.M):
        found[group][macro] = text
    return found


def changed(found):
    faults = set()
    for group, texts in VERSION_1.items():
        for text in texts.split():
            if found[group].get(text.upper()) != text:
                faults.add("OCS_%s_%s is not \"%s\"" % (group, text.upper(), text))
        for macro, text in found[group].items():
            if macro != text.upper():
                faults.add("OCS_%s_%s says \"%s\"" % (group, macro, text))
            if text not in texts.split():
                faults.add("the test does not have OCS_%s_%s" % (group, macro))
    return faults


def spelled(path, text, fields):
    """What a source spells that names.h has."""
    faults = set()
    patterns = VALUE + [ON_WIRE if path.startswith("src/ocsctl") else MEMBER]
    for pattern in patterns:
        for match in pattern.finditer(text):
            if pattern in VALUE or match.group(1) in fields:
                faults.add("%s:%d: \"%s\" is a name of the wire: src/protocol/names.h has it" %
                           (path, text.count("\n", 0, match.start()) + 1, match.group(1)))
    return faults


def described(page):
    """({operation}, {event}, {reply of show}, {field}, [fault]) of doc/protocol.md."""
    operations, events, shown, fields, faults = set(), set(), set(), set(), []
    for title, body in re.findall(r"^### ([^\n]*`)$\n(.*?)(?=^##|\Z)", page, re.M | re.S):
        names = re.findall(r"`(\w+)`", title)
        if title.startswith("event "):
            events.add(names[0])
        elif len(names) == 2:
            shown.add(names[1])
        else:
            operations.add(names[0])
        if not title.startswith("event ") and \
           not re.match(r"\nRole: (none|anyone|owner|controller|administrator)\.", body):
            faults.append("%s has no role" % title)
        if len(names) == 1 and not title.startswith("event ") and "Errors:" not in body:
            faults.append("%s has no errors" % title)
        if "| field | in | type | meaning |" not in body:
            faults.append("%s has no table of fields" % title)
    for row in re.findall(r"^\| `([\w.\[\]{}]+)` \|(.*)\|$", page, re.M):
        fields.update(re.findall(r"\w+", row[0]))
        if row[1].count("|") != 2 or not all(cell.strip() for cell in row[1].split("|")[:2]):
            faults.append("the row of %s does not say where it is and of what type" % row[0])
    return operations, events, shown, fields, faults


def compared(what, described_names, names):
    return {"doc/protocol.md does not describe the %s %s" % (what, name)
            for name in names - described_names} | \
           {"doc/protocol.md has the %s %s, names.h does not" % (what, name)
            for name in described_names - names}


def undescribed(page, found):
    operations, events, shown, fields, faults = described(page)
    return set(faults) | compared("operation", operations, set(found["OP"].values())) | \
        compared("event", events, set(found["EVENT"].values())) | \
        compared("reply of show", shown, set(found["SHOW"].values())) | \
        compared("field", fields, set(found["FIELD"].values()))


def finds_faults(page, header):
    """The checks above, tried on one fault of each kind."""
    faults = set()
    if not changed(names_of(header.replace('"epoch"', '"Epoch"'))):
        faults.add("a changed name is not found")
    if not changed(names_of(header + '#define OCS_FIELD_NEWEST "newest"\n')):
        faults.add("a new name is not found")
    for made_up in ('ocs_field_add_text(line, OCS_FIELD_OP, "apply");', 'text_of(line, "op")',
                    'ocs_request_new("show")', 'json_object_object_add(line, "epoch", NULL);',
                    'ocs_field_text(request,\n\t"node", NULL)', 'if (strcmp(op, "gone") == 0)'):
        for path in ("src/ocsd/x.c", "src/ocsctl/x.c"):
            if not spelled(path, made_up, {"epoch", "node"}):
                faults.add("%s: not found: %s" % (path, made_up))
    found = names_of(header)
    for cut in ("### `unheard`\n", "| `ports[].in_dbm` |", "### event `plan`\n", "### `show` `cube`\n",
                "Role: owner."):
        if cut not in page or not undescribed(page.replace(cut, "x"), found):
            faults.add("not missed in doc/protocol.md: " + cut.strip())
    return faults


def main():
    header, page = read("src/protocol/names.h"), read("doc/protocol.md")
    found, everything = names_of(header), dict(sources())
    result("the names of version 1 are the same to the letter", changed(found))
    result("doc/protocol.md has a section for every operation and event, and a row for every field",
           undescribed(page, found))
    faults = set()
    for path, text in everything.items():
        faults |= spelled(path, text, set(found["FIELD"].values()))
    result("names of the wire are spelled in src/protocol only", faults)
    used = " ".join(list(everything.values()) + [read("src/protocol/client.c"), read("src/protocol/fields.c"),
                                                 read("src/forward/hosts.c")])
    result("every name is used", {
        "OCS_%s_%s is used nowhere" % (group, macro) for group in found for macro in found[group]
        if not re.search(r"\bOCS_%s_%s\b" % (group, macro), used)})
    result("the checks find faults", finds_faults(page, header))
    return end()


if __name__ == "__main__":
    raise SystemExit(main())
