# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Reads topology and graph files by the rules of NCCL's parser, which is not one of XML.

`read` returns the elements, or raises Refused where NCCL stops."""

ELEMENTS = {"topology": 256, "graph": 65536}
TEXT = 254                  # characters of a name or a value that still fit
ATTRIBUTES = 16
CHILDREN = 640
# what may be inside what; all else is skipped with its contents
GRAMMAR = {
    "topology": {None: ("system",), "system": ("cpu",), "cpu": ("pci", "nic"),
                 "pci": ("pci", "gpu", "nic", "pcilink"), "gpu": ("nvlink", "c2c"), "nic": ("net",)},
    "graph": {None: ("graphs",), "graphs": ("graph",), "graph": ("channel",), "channel": ("net", "gpu")},
}


class Refused(Exception):
    pass


class Element:
    def __init__(self, name, attributes, children=()):
        self.name, self.attributes, self.children = name, attributes, list(children)

    def get(self, key, default=None):
        return self.attributes.get(key, default)

    def all(self, name):
        """Elements called NAME below this one, in the order of the file."""
        for child in self.children:
            if child.name == name:
                yield child
            yield from child.all(name)


class Text:
    """The file, one character after the other."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def next(self):
        if self.at >= len(self.text):
            raise Refused("the file ends early")
        self.at += 1
        return self.text[self.at - 1]

    def word(self, valued):
        """(name, value, what ended it)"""
        name = ""
        while True:
            c = self.next()
            if c == "=":
                if not valued:
                    raise Refused("a value where there is none: %s" % name)
                return (name,) + self.value()
            if c in " >/\n\r":
                return name, None, c
            name += c
            if len(name) >= TEXT + 1:
                raise Refused("a name too long")

    def value(self):
        quote = self.next()
        if quote not in "\"'":
            raise Refused("a value without quotes")
        value = ""
        while True:
            c = self.next()
            if c == quote:
                return value, self.next()
            value += c
            if len(value) >= TEXT:
                raise Refused("a value too long")

    def comment(self, tail):
        tail = tail[-3:]
        while tail != "-->":
            tail = (tail + self.next())[-3:]

    def tag(self):
        """(kind, name, attributes); kind is open, close, single, or None at the end"""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \n\r":
                self.at += 1
            if self.at >= len(self.text):
                return None, None, None
            if self.next() != "<":
                raise Refused("something between the tags")
            name, _, end = self.word(False)
            if not name.startswith("!--"):
                break
            self.comment("..." + name[3:] + end)
        if not name and end == "/":
            name, _, end = self.word(False)
            if end != ">":
                raise Refused("</%s is not closed" % name)
            return "close", name, {}
        attributes, count = {}, 0
        while end == " ":
            key, value, end = self.word(True)
            count += 1
            if count <= ATTRIBUTES:
                attributes.setdefault(key, value or "")
        kind = "open"
        if end == "/":
            kind = "single"
            _, _, end = self.word(False)
        if end != ">":
            raise Refused("<%s is not closed" % name)
        attributes.pop("", None)
        return kind, name, attributes


def contents(text, parent, grammar, room):
    """Reads what is inside PARENT, an Element or what is Skipped; the name that closes it."""
    known = grammar.get(parent.name, ()) if isinstance(parent, Element) else ()
    outermost = isinstance(parent, Element) and parent.name is None
    while True:
        if room[0] == 0:
            raise Refused("too many elements")
        tag, name, attributes = text.tag()
        if tag is None:
            if outermost:
                return None
            raise Refused("an element is not closed")
        if tag == "close" and not outermost:
            return name
        element = None
        if tag != "close" and name in known:
            if len(parent.children) == CHILDREN:
                raise Refused("too many elements in one")
            element = Element(name, attributes)
            parent.children.append(element)
            room[0] -= 1
        if tag == "single":
            continue
        ended = contents(text, element or Skipped(name), grammar, room)
        if ended != name:
            raise Refused("<%s> is closed by </%s>" % (name, ended))


class Skipped:
    """An element that NCCL does not know, with all that is in it."""

    def __init__(self, name):
        self.name = name


def read(text, kind):
    """The outermost element (system or graphs), or None if NCCL finds none in TEXT."""
    root = Element(None, {})
    contents(Text(text), root, GRAMMAR[kind], [ELEMENTS[kind]])
    version = root.children[0].get("version") if root.children else None
    if root.children and (version is None or number(version) != 1):
        raise Refused("version %s" % version)
    return root.children[0] if root.children else None


def number(text, base=0):
    """As strtol reads it: what comes first, or 0."""
    text = text.strip()
    sign = -1 if text[:1] == "-" else 1
    digits = text.lstrip("+-").lower()
    if base in (0, 16) and digits.startswith("0x"):
        base, digits = 16, digits[2:]
    elif base == 0:
        base = 8 if digits.startswith("0") and len(digits) > 1 else 10
    value = 0
    for c in digits:
        d = "0123456789abcdef".find(c)
        if d < 0 or d >= base:
            break
        value = value * base + d
    return sign * value
