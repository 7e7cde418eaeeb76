"""Compares a frozen graph's conversion, constants and text of model.py, with the graph.

There is no manifest. The source is written again, and every constant in a file must be the graph's,
in every bit. model.py is a program, and may be a stranger's: it is read as text, and not run. Where
it is not, in every letter, as written today, its results are left to `--forward`.
"""

from __future__ import annotations

import ast
import filecmp
import math
import os
from typing import Dict, List, Optional, Sequence

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.model.load import read_meta_graph, write_source
from migrate.model.outputs import find_outputs
from migrate.runtime.files import ASSETS, CONSTANTS, arrays_of, read_arrays
from migrate.runtime.source import SOURCE
from migrate.verification.findings import Verification
from semisync.common.errors import BadInput
from semisync.common.files import read_text
from semisync.common.sentences import words_of


def compare_constants(
    checkpoint: Checkpoint, directory: str, assets: Sequence[str] = ()
) -> Verification:
    """Compares the converted `directory` with the frozen graph that `checkpoint` is.

    Raises:
        BadInput: there is no model.py, or it cannot be read.
    """
    result = Verification(checkpoint.prefix, directory)
    path = os.path.join(directory, SOURCE)
    text = read_text(path)
    found = read_meta_graph(checkpoint, None, assets=assets)
    outputs = find_outputs(found.graph, _outputs(text, path))
    written = write_source(found, checkpoint, outputs)
    result.source_agrees = text == written.text
    ours = _arrays(directory)
    for name, wanted in arrays_of(written.constants.large).items():
        _compare(name, ours.get(name), wanted, result)
    for name, source in written.constants.assets.items():
        result.tensors += 1
        asset = os.path.join(directory, ASSETS, name)
        if not os.path.isfile(asset) or not filecmp.cmp(asset, source, shallow=False):
            result.differs(f"{ASSETS}/{name} is not {source}, which the graph names")
    if not result.source_agrees:
        result.unchecked.append(
            f"{SOURCE}, whose text is not what this version writes of the graph: "
            "`semisync verify --forward` runs it"
        )
    if not result.tensors and not result.source_agrees:
        result.differs(f"there is nothing to compare: no constant is beside {SOURCE}")
    return result


def _outputs(text: str, path: str) -> List[str]:
    """The OUTPUTS of model.py."""
    try:
        for statement in ast.parse(text).body:
            if not isinstance(statement, ast.Assign):
                continue
            if [getattr(target, "id", None) for target in statement.targets] == ["OUTPUTS"]:
                return [str(one) for one in ast.literal_eval(statement.value)]
    # What ast raises for a text that anybody may have written.
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise BadInput(f"{path} cannot be read: {words_of(error)}") from error
    raise BadInput(f"{path} has no OUTPUTS; convert the model again with this version")


def _arrays(directory: str) -> Dict[str, numpy.ndarray]:
    try:
        return read_arrays(directory)
    except Exception as error:  # what zipfile, zlib and numpy raise of damage
        raise BadInput(f"{directory}/{CONSTANTS} cannot be read: {words_of(error)}") from error


def _compare(
    name: str, ours: Optional[numpy.ndarray], wanted: numpy.ndarray, result: Verification
) -> None:
    result.tensors += 1
    result.rows += len(wanted)
    if ours is None:
        result.differs(f"{CONSTANTS} has no constant {name!r}")
    elif (ours.dtype, ours.shape) != (wanted.dtype, wanted.shape):
        sizes = [f"{one.dtype} {list(one.shape)}" for one in (ours, wanted)]
        result.differs(f"{name!r} is {sizes[0]} in {CONSTANTS}, and {sizes[1]} in the graph")
    else:
        rows = int((_bytes_of_rows(ours) != _bytes_of_rows(wanted)).any(1).sum())
        result.differing_rows += rows
        if rows:
            result.differs(f"{name!r}: {rows:,} of {len(wanted):,} rows differ")


def _bytes_of_rows(array: numpy.ndarray) -> numpy.ndarray:
    rows = numpy.ascontiguousarray(array).reshape(len(array), math.prod(array.shape[1:]))
    return rows.view(numpy.uint8)
