# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Files that differ from good ones in one thing, and whether NCCL still reads what is meant: each kind of
change is known to harm or not to harm, and what one byte does is decided by the judge's reader."""

import random
import re

import reader

TAG = re.compile(r"<[a-z][^>]*>")


def places(text, pattern):
    return list(re.finditer(pattern, text))


def change(pattern, replacement, harms, name):
    """A mutation at any one place of PATTERN; REPLACEMENT as for Match.expand, or a function."""
    def mutate(text, rng):
        found = places(text, pattern)
        if not found:
            return None
        at = rng.choice(found)
        new = replacement(at, rng, text) if callable(replacement) else at.expand(replacement)
        return text[:at.start()] + new + text[at.end():]
    return name, harms, mutate


def other(key):
    """The value of another element with KEY."""
    def replace(at, rng, text):
        values = sorted(set(re.findall(r'\b%s="([^"]*)"' % key, text)) - {at.group(1)})
        return '%s="%s"' % (key, rng.choice(values))
    return replace


def whole(function, harms, name):
    return name, harms, lambda text, rng: function(text, rng)


SYNTAX = [
    change(r'(?<=[a-z]) (?=[a-z]+=")', "\t", True, "a tab between attributes"),
    change(r'(?<=[a-z"]) (?=[a-z]+=")', "\n", True, "a line end inside a tag"),
    change(r'="([^" ]*)"', r"=\1", True, "a value without quotes"),
    change(r"</([a-z]+)>", r"</\1x>", True, "another closing tag"),
    change(r"</[a-z]+>\n", "", True, "no closing tag"),
    change(r"</([a-z]+)>", r"</\1 >", True, "a blank in a closing tag"),
    change(r'="[^"]*"', lambda at, rng, text: '="%s"' % ("x" * rng.randint(255, 600)), True, "a value too long"),
    change(r"(?m)^", r'<!--a=b -->', True, "a comment whose first word has ="),
    change(r"(?m)^", r"text", True, "text between tags"),
    change(r'version="1"', r'version="2"', True, "another version"),
    change(r' version="1"', r"", True, "no version"),
    whole(lambda t, r: '<?xml version="1.0"?>\n' + t, True, "a prolog"),
    whole(lambda t, r: "<!DOCTYPE system>\n" + t, True, "a DOCTYPE"),
    whole(lambda t, r: "\ufeff" + t, True, "a byte order mark"),
    whole(lambda t, r: t[:r.randrange(1, len(t) - 3)], True, "a file that ends early"),
    change(r"(?m)^ *(?=<)", lambda at, rng, text: " \n" * rng.randint(1, 3), False, "blank lines"),
    change(r"(?m)^", "<!-- some words -->", False, "a comment"),
    change(r'="([^"\']*)"', r"='\1'", False, "single quotes"),
    change(r'(?<=[a-z]) (?=[a-z]+=")', "  ", False, "two blanks"),
    change(r"/>", " />", False, "a blank before the end of a tag"),
    change(r"<[a-z]+(?= )", r'\g<0> comment="x"', False, "an attribute that NCCL does not know"),
]
TOPOLOGY = SYNTAX + [
    change(r' affinity="[^"]*"', "", True, "no affinity"),
    change(r'affinity="[^"]*"', 'affinity="0-3"', True, "a list as affinity"),
    change(r' numaid="[^"]*"', "", True, "no numaid"),
    change(r'\bnumaid="([^"]*)"', other("numaid"), True, "one numaid twice"),
    change(r'arch="x86_64"', 'arch="riscv64"', True, "an unknown architecture"),
    change(r' (vendor|familyid|modelid|arch)="[^"]*"(?=[^>]*>\n    <pci)', "", True, "a processor incomplete"),
    change(r' busid="[^"]*"', "", True, "no busid"),
    change(r'busid="0000:(..):00.0"', lambda at, r, t: 'busid="0000:%s:00"' % at.group(1), True, "a busid cut"),
    change(r'busid="0000:([0-9a-f]*[a-f][0-9a-f]*)', lambda at, r, t: 'busid="0000:' + at.group(1).upper(), True,
           "a busid in capitals"),
    change(r'\bbusid="([^"]*)"', other("busid"), True, "one busid twice"),
    change(r'link_speed="[^"]*"', 'link_speed="17.0 GT/s PCIe"', True, "an unknown speed"),
    change(r'link_width="[^"]*"', 'link_width="x16"', True, "lanes in words"),
    change(r'<net name="[^"]*"', "<net", True, "no name"),
    change(r'\bname="([^"]*)"', other("name"), True, "one name twice"),
    change(r' speed="[0-9]+"', ' speed="fast"', True, "a speed in words"),
    change(r"<net ", '<net keep="1" ', True, "keep"),
    change(r'class="0x0302[^"]*"([^>]*)/>', r'class="0x030200"\1><pci busid="0000:ff:1f.0" class="0x030200" '
           r'link_speed="8 GT/s" link_width="16"/></pci>', True, "a device in a GPU"),
    change(r"<nic>", "<nic/><nic>", True, "a second nic"),
    change(r' speed="[0-9]+"', "", False, "no speed"),
    change(r' class="0x030200"', "", False, "no class, where the device can be asked"),
    change(r' link_speed="[^"]*"', "", False, "no link_speed"),
    change(r"(?m)^(?= *<pci)", "<other><pci></pci></other>", True, "an element that NCCL ignores"),
]
GRAPH = SYNTAX + [
    change(r' (id|pattern|crossnic|nchannels|speedintra|speedinter|typeintra|typeinter|samechannels)="[^"]*"', "",
           True, "an attribute of the graph missing"),
    change(r'nchannels="(\d+)"', lambda at, r, t: 'nchannels="%d"' % (int(at.group(1)) + r.choice((-1, 1, 9))),
           True, "another number of channels"),
    change(r' dev="[^"]*"', "", True, "no dev"),
    change(r'dev="[^"]*"', 'dev="mlx5_0"', True, "a word as dev"),
    change(r" *<gpu [^>]*>\n", "", True, "a GPU missing in a channel"),
    change(r"( *<gpu [^>]*>\n) *<gpu [^>]*>\n", r"\1\1", True, "a GPU twice"),
    change(r" *<net [^>]*>\n(?= *<gpu)", "", True, "one net"),
    change(r" *<net [^>]*>\n", r"\g<0>\g<0>", True, "three nets"),
    change(r'pattern="4"', 'pattern="3"', True, "another pattern"),
    change(r'type(intra|inter)="[^"]*"', r'type\1="NEAR"', True, "an unknown type of path"),
    change(r'speed(intra|inter)="[^"]*"', r'speed\1="fast"', True, "a speed in words"),
    change(r' latencyinter="[^"]*"', "", False, "no latency"),
    change(r'dev="([0-9a-f])"', r'dev="0x\1"', False, "dev with 0x"),
    change(r'typeinter="[^"]*"', 'typeinter="PHB"', False, "another type of path"),
    change(r'samechannels="0"', 'samechannels="1"', False, "the same channels"),
]


def plain(element):
    """What NCCL keeps of an element."""
    return (element.name, tuple(sorted(element.attributes.items())), tuple(plain(c) for c in element.children))


def of_a_byte(text, kind, rng):
    """(harms, text) of a change of one byte, or None where the reader alone does not know."""
    at = rng.randrange(len(text) - 1)
    new = text[:at] + rng.choice(["", text[at] * 2, rng.choice(" <>/=\"'\n\tx0")]) + text[at + 1:]
    try:
        root = reader.read(new, kind)
    except reader.Refused:
        return True, new
    if root and plain(root) == plain(reader.read(text, kind)):
        return False, new
    return None


def make(text, kind, count, seed):
    """COUNT times (name, harms, text): half of them one byte, half one of the changes above."""
    rng = random.Random(seed)
    known = GRAPH if kind == "graph" else TOPOLOGY
    made = 0
    while made < count:
        if made % 2:
            found = of_a_byte(text, kind, rng)
            if not found:
                continue
            name, (harms, new) = "a byte", found
        else:
            name, harms, mutate = known[made // 2 % len(known)]
            new = mutate(text, rng)
            assert new is not None, name
        if new != text:
            made += 1
            yield name, harms, new
