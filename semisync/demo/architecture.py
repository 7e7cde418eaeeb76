"""The demo's DeepFM: tables, sizes, names.

Every field has one vector of DIM numbers per row: the first is the field's linear weight, the
others are its factors. The categorical fields share one table, which is partitioned over the PS;
the bucketised numbers share a small one. A 64-bit id finds its row by the floored remainder.

    logit = bias + sum_f linear_f + sum_{f<g} <factors_f, factors_g> + tower(concatenated vectors)

The tower is HIDDEN layers, each dense -> BatchNorm -> ReLU, and a dense output.
"""

from typing import Dict, List, NamedTuple, Tuple

DIM = 8
HIDDEN = (64, 32)
BATCH_NORM_EPSILON = 1e-3


class Table(NamedTuple):
    """One embedding table.

    Attributes:
        name: of the TensorFlow variable.
        rows: their number.
        partitions: their number, over the PS; 1 is a plain variable.
        fields: the click log's fields that look their ids up here, in the log's order.
    """

    name: str
    rows: int
    partitions: int
    fields: Tuple[str, ...]


def tables(fields: Tuple[str, ...], numeric: int, partitions: int) -> List[Table]:
    """The tables for a click log, without a table that no field uses.

    Args:
        fields: of the log, the `numeric` bucketised ones last.
        numeric: how many of them are numbers.
        partitions: of the categorical table.
    """
    categorical = len(fields) - numeric
    both = [
        Table("ids/embedding", 1 << 16, partitions, tuple(fields[:categorical])),
        Table("buckets/embedding", 1 << 10, 1, tuple(fields[categorical:])),
    ]
    return [table for table in both if table.fields]


def layer_names() -> List[Dict[str, str]]:
    """TensorFlow's names of the tower's variables, layer by layer; the last has no BatchNorm."""
    hidden = [{"dense": "hidden_%d" % i, "norm": "norm_%d" % i} for i in range(len(HIDDEN))]
    return hidden + [{"dense": "output"}]
