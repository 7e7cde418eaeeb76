"""Variables that a partitioner has cut along one axis: "bn/moving_mean/part_0", ".../part_1", ...

A whole one is read as the concatenation of its parts, and assigned as a split of its value.
"""

import re

from graph_rewrite.graph.ops import CARRY, CAST, READ, VARIABLES
from graph_rewrite.graph.passthrough import ends
from semisync.common.tensor_names import split

CONCATS = ("ConcatV2", "Concat")
SPLITS = ("Split", "SplitV")

_PART = re.compile(r"(.+)/part_(\d+)$")


def number(name):
    """The number of the part that a variable is, by its name; None where it is no part."""
    part = _PART.match(name)
    return int(part.group(2)) if part else None


def whole(names, name):
    """The name of the partitioned variable that a variable is a part of, or its own.

    Args:
        names: of the graph's nodes, or of its variables.
    """
    part = _PART.match(name)
    return part.group(1) if part and part.group(1) + "/part_1" in names else name


def parts(names, name):
    """The names of the variables that make up one, in their order; `names` as for `whole`."""
    if name + "/part_1" not in names:
        return [name]
    existing, part = [], name + "/part_0"
    while part in names:
        existing.append(part)
        part = "{}/part_{}".format(name, len(existing))
    return existing


def joined(nodes, tensor):
    """The name of the variable whose parts a tensor concatenates, or None."""
    node = nodes.maker(tensor)
    if node.op not in CONCATS:
        return None
    # ConcatV2 takes its axis last, Concat first.
    inputs = nodes.inputs(node)
    taken = inputs[:-1] if node.op == "ConcatV2" else inputs[1:]
    made = [split(end)[0] for part in taken for end in ends(nodes, part, CARRY | CAST | READ)]
    if not made or any(name not in nodes or nodes[name].op not in VARIABLES for name in made):
        return None
    name = whole(nodes, made[0])
    return name if name != made[0] and made == parts(nodes, name) else None


def unsplit(nodes, tensor, part):
    """The tensor that is split into parts of which this one has the number `part`; or itself."""
    for end in ends(nodes, tensor, CARRY | CAST):
        node, output = nodes.get(split(end)[0]), split(end)[1]
        if node is not None and node.op in SPLITS and output == part:
            return node.input[1 if node.op == "Split" else 0]  # Split takes its axis first
    return tensor
