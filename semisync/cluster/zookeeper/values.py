"""The values of nodes, which anybody who reaches ZooKeeper may have written."""

from typing import Any, Dict

from semisync.common import json_text
from semisync.common.errors import BadInput


def foreign(path: str) -> BadInput:
    """The error of a node that semisync has not made so."""
    return BadInput(
        "the node {} in ZooKeeper does not hold what semisync writes there: remove it, or give the "
        "job another --job".format(path)
    )


def read_object(path: str, value: bytes, **kinds: Any) -> Dict[str, Any]:
    """The JSON object that is the value of the node at `path`.

    Args:
        kinds: the types of keys that it has, or a tuple of types.

    Raises:
        BadInput: it is something else.
    """
    try:
        found = json_text.loads(value)
    except ValueError as error:
        raise foreign(path) from error
    if not isinstance(found, dict):
        raise foreign(path)
    if not all(isinstance(found.get(key), kind) for key, kind in kinds.items()):
        raise foreign(path)
    return found
