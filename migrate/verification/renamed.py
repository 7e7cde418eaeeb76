"""Do the names of model.py lead to the tensors that they stand for?"""

from __future__ import annotations

from typing import Iterator, Tuple

import torch

from migrate.manifest.manifest import Manifest, Renamed
from migrate.targets.reading import Reader
from migrate.verification.expected import as_bytes
from migrate.verification.findings import Verification
from semisync.common.errors import BadInput

_ROWS = 1 << 16  # at a time


def check_renamed(manifest: Manifest, reader: Reader, result: Verification) -> None:
    """Compares every value under each name, bit by bit."""
    for one in manifest.renamed:
        try:
            same = one.name in reader.tensors and all(map(_equal, _pairs(one, reader)))
        except (BadInput, KeyError) as error:
            result.differs(f"{one.name!r}, model.py's name of {one.fqn!r}: {error}")
            continue
        if not same:
            result.differs(f"{one.name!r} is not {one.fqn!r}, which model.py calls so")


def _pairs(one: Renamed, reader: Reader) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
    own, other = reader.tensors[one.name].shape, reader.tensors[one.fqn].shape
    if one.as_written and one.rows is not None:
        other = (one.rows[1], *other[1:])
    count = other[0] if other else 1
    if one.axes is not None and sorted(one.axes) != list(range(len(other))):
        raise BadInput(f"that is {list(other)}, which lacks the axes {one.axes}")
    if not one.as_written:
        mine = reader.rows(one.name, 0, own[0])
        yield mine, one.of(reader.rows(one.fqn, 0, count))
        return
    again = reader.reopened()  # keeps a chunk of its own: the two names are read in turn
    for first in range(0, count if own == other else 0, _ROWS):
        rows = min(_ROWS, count - first)
        yield reader.rows(one.name, first, rows), again.rows(one.fqn, first, rows)
    if own != other:
        raise BadInput(f"it is {list(own)}, not {list(other)}")


def _equal(pair: Tuple[torch.Tensor, torch.Tensor]) -> bool:
    mine, other = (as_bytes(one) for one in pair)
    return mine.shape == other.shape and bool((mine == other).all())
