"""A wrapped graph's record of the plain job's step: one batch, applied at once.

The training ops of such a graph take the chief's combination of M batches. To train on
elsewhere, one has to know their inputs in the plain job. So each `GlobalBatchOptimizer` puts a
`PlainStep` into the collection COLLECTION, as JSON: `semisync.wrapped.plain_step` writes it, and
`migrate.graph.wrapped` follows it.
"""

import json
from typing import Dict, List, Mapping, NamedTuple, Optional

from semisync.common import json_text
from semisync.common.errors import BadInput

COLLECTION = "semisync/plain_step"
FORMAT = 1  # raise it when a reader of this one would misunderstand


class PlainStep(NamedTuple):
    """By names, as a GraphDef has them.

    Attributes:
        tensors: {tensor that is made of M batches: the tensor that the plain job has in its place}.
        waits: {op: names of ops}: in its place the plain job has a NoOp that waits for these.
    """

    tensors: Dict[str, str]
    waits: Dict[str, List[str]]


def describe(step):
    """The `PlainStep` as an entry of the collection."""
    return json.dumps(dict(step._asdict(), format=FORMAT), sort_keys=True)


def understand(entry: str, path: str) -> Optional[PlainStep]:
    """The reverse of `describe`; None for another format.

    Imported with import_scope="SCOPE", TensorFlow puts "SCOPE/" before every entry.

    Args:
        path: of the file that holds the entry.

    Raises:
        BadInput: it is damaged.
    """
    scope, brace, rest = entry.partition("{")
    try:
        told = json_text.loads(brace + rest)
        if told["format"] != FORMAT:
            return None
        return PlainStep(
            {scope + tensor: scope + own for tensor, own in told["tensors"].items()},
            {scope + op: [scope + name for name in names] for op, names in told["waits"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            "{}: an entry of the collection {!r} is damaged".format(path, COLLECTION)
        ) from error


def with_ops(entry: str, others: Mapping[str, str]) -> str:
    """An entry of `describe` that waits for other ops, by name, in the place of some."""
    step = understand(entry, COLLECTION)
    assert step is not None, entry
    waits = {op: [others.get(name, name) for name in names] for op, names in step.waits.items()}
    return describe(step._replace(waits=waits))
