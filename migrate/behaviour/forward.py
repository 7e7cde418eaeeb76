"""The same rows through TensorFlow and through model.py: every output, and the first node that
differs.

1. The rows are all, or a sample with the rare values, see `drawn_rows`.
2. Batches of many rows, of seven and of one go through both; the outputs are compared row by row,
   see `difference`. If TensorFlow's graph takes a fixed number of rows, the last one is repeated on
   its side, and the additional results are dropped.
3. The graph must be deterministic: if TensorFlow's outputs differ between two runs of one batch,
   something in it is random, and nothing can be compared.
4. If an output differs, `first_node` looks for the first node that does, in the first batch in
   which one differs too much.
5. onnxruntime compares the first batch, too, where the model can be exported, see `onnx_legs`.
"""

from __future__ import annotations

import functools
import itertools
from typing import Iterator, List, Mapping, Tuple

import numpy as np

from migrate.behaviour.both import Both, Names, open_both
from migrate.behaviour.difference import apart
from migrate.behaviour.drawn_rows import Drawn, draw_rows
from migrate.behaviour.largest import Largest
from migrate.behaviour.numeric import numeric_part
from migrate.behaviour.onnx_legs import OF_TENSORFLOW, OF_TORCH, Legs, Witness, run_legs
from migrate.behaviour.report import TORCH, ForwardReport
from migrate.behaviour.rows import Rows, read_rows
from migrate.behaviour.setting import DEFAULT, Setting
from semisync.common.errors import BadInput, UsageError
from semisync.common.tensor_names import of_edge

ROWS = 10_000
_FIRST = (1, 8)  # rows at which the first batch is split


def compare_forward(
    prefix: str,
    converted: str,
    data: str,
    setting: Setting = DEFAULT,
    outputs: Names = None,
    rows: int = ROWS,
    onnx: bool = True,
) -> ForwardReport:
    """Whether the outputs of model.py are TensorFlow's.

    Args:
        prefix: a checkpoint with its MetaGraph, a SavedModel or a frozen graph.
        converted: its conversion by `semisync convert --model`.
        data: a data set as `semisync score` reads it.
        outputs: the outputs of model.py to compare; by default all.
        rows: of the data set, drawn by `drawn_rows`.
        onnx: whether onnxruntime is a third witness.

    Raises:
        BadInput, UsageError: they cannot be compared.
    """
    if rows < 1:
        raise UsageError(f"the rows to compare are 1 or more, not {rows}")
    with open_both(prefix, converted, setting, outputs) as both:
        inputs = both.given.inputs
        drawn = draw_rows(data, inputs, setting, rows)
        batches = read_rows(data, inputs, setting, both.fixed, drawn.rows)
        return _compare(both, _of_several_sizes(batches), drawn, onnx)


def _of_several_sizes(batches: Iterator[Rows]) -> Iterator[Tuple[Rows, Rows]]:
    """The same rows, each with its original batch: the first batch is split into three, the last
    two of seven rows and of one."""
    for batch in itertools.islice(batches, 1):
        ends = [0, *(end for end in _FIRST if end < batch.rows), batch.rows]
        # The largest first: the exports and the second run of TensorFlow take the first batch.
        yield from reversed([(batch.part(*both), batch) for both in zip(ends, ends[1:])])
    yield from ((batch, batch) for batch in batches)


def _compare(
    both: Both, batches: Iterator[Tuple[Rows, Rows]], drawn: Drawn, onnx: bool
) -> ForwardReport:
    names = list(both.chosen)
    tensors = [of_edge(edge) for edge in both.chosen.values()]
    largest = {name: Largest(name, TORCH) for name in names}
    done, failing, legs = 0, None, Legs([], {})
    for batch, whole in batches:
        theirs = both.tensorflow.fetch(batch.size, batch.features, tensors)
        given = both.given_of(batch)
        ours = dict(zip(both.model.outputs, both.model.run(given)))
        if not done:
            _check_twice(both, batch, theirs, tensors)
            legs = _legs(both, batch, dict(zip(tensors, theirs))) if onnx else legs
        beyond = [
            largest[name].take(batch, value, ours[name], both.rounding(batch, tensor))
            for name, tensor, value in zip(names, tensors, theirs)
        ]
        if failing is None and any(beyond):
            failing = whole
        done += batch.rows
    first = None if failing is None else both.first_node(failing)
    told = [one.told() for one in largest.values()] + legs.outputs
    notes = [*filter(None, [drawn.how]), *both.notes()]
    fixed = both.given.batch
    return ForwardReport(done, drawn.total, told, first, legs.skipped, notes, fixed)


def _legs(both: Both, batch: Rows, theirs: Mapping[str, np.ndarray]) -> Legs:
    given = both.given.of(batch.features)
    names = {of_edge(edge): name for name, edge in both.chosen.items()}
    fetch = functools.partial(both.tensorflow.fetch, batch.size, batch.features)
    try:
        part = numeric_part(both.subject, both.written, both.chosen, both.model, given, fetch)
    except BadInput as error:
        return Legs([], {OF_TORCH: str(error), OF_TENSORFLOW: str(error)})
    return run_legs(both.tensorflow, part, Witness(batch, theirs, names))


def _check_twice(both: Both, batch: Rows, theirs: List[np.ndarray], tensors: List[str]) -> None:
    again = both.tensorflow.fetch(batch.size, batch.features, tensors)
    if any(apart(one, other).beyond.any() for one, other in zip(theirs, again)):
        raise BadInput(
            f"{both.subject.raw.path}: TensorFlow gives other outputs for the same rows each time, "
            f"as the graph draws at random in {both.drawing()}; feed what turns that off, such as "
            "--feed keep_prob=1.0"
        )
