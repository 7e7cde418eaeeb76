"""Names of tensors.

in a GraphDef     "op" is output 0 of the node "op", "op:1" its output 1; "^op" waits for it
in a session      "op:0" and "op:1"; SignatureDefs and CollectionDefs write them so too
in a function     "op:output:k" is another grammar, of `migrate.graph.functions`
"""

import functools
from typing import Tuple

from semisync.common.errors import UsageError

CONTROL = -1  # the output of a control edge


@functools.lru_cache(maxsize=1 << 18)
def split(tensor: str) -> Tuple[str, int]:
    """("op", output) of either form; the output of "^op" is CONTROL.

    Raises:
        UsageError: the output is not a number.
    """
    if tensor.startswith("^"):
        return tensor[1:], CONTROL
    name, colon, output = tensor.rpartition(":")
    if not colon:
        return tensor, 0
    if not output.isdecimal():
        raise UsageError("{!r} is not the name of a tensor, NODE or NODE:OUTPUT".format(tensor))
    return name, int(output)


def node_of(tensor: str) -> str:
    """The name of the node that makes it."""
    return split(tensor)[0]


def join(name: str, output: int = 0) -> str:
    """The name as it stands in a GraphDef."""
    if output == CONTROL:
        return "^" + name
    return "{}:{}".format(name, output) if output else name


def of_edge(edge: Tuple[str, int]) -> str:
    """The name in a session of ("op", output)."""
    return "{}:{}".format(*edge)


def in_session(tensor: str) -> str:
    """The name as a session takes it, "op:0" for "op"."""
    return tensor if ":" in tensor else tensor + ":0"


def short(tensor: str) -> str:
    """The name as users write it, "op" for "op:0"."""
    return tensor[:-2] if tensor.endswith(":0") else tensor
