"""Scores from standard input, which `-` names: kept in a temporary file while they are compared.

Several readers go through a data set more than once, and Parquet is read from its end, so a pipe
is copied first. Parquet and ORC are known by their magic; anything else is text: lines of JSON if
it begins with {, else separated by tabs if its first line holds one, by commas if not; --text says
otherwise.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from typing import Any, Iterator

from parity.io.data_files import ORC, PARQUET
from semisync.common.errors import BadInput, SemisyncError, UsageError
from semisync.storage.sources import PACKED

NAME = "-"

_SIDES = ("baseline", "candidate", "baseline_runs", "candidate_runs")
_TOLD = "standard input"


@contextlib.contextmanager
def kept(args: argparse.Namespace) -> Iterator[None]:
    """Puts a file's path in place of `-` in the arguments, and takes it out of messages.

    Raises:
        UsageError: it comes twice.
        BadInput: it holds no data.
    """
    given = [(side, getattr(args, side)) for side in _SIDES if getattr(args, side)]
    named = [path for _, paths in given for path in ([paths] if isinstance(paths, str) else paths)]
    if NAME not in named:
        yield
        return
    if named.count(NAME) > 1:
        raise UsageError("standard input (-) is named twice, but can be read once; use a file")
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        path = _copied(folder, args.text is None)
        for side, paths in given:
            setattr(args, side, _replaced(paths, NAME, path))
        args.kept = path
        try:
            yield
        except SemisyncError as error:
            raise type(error)(str(error).replace(path, _TOLD)) from error


def renamed(args: argparse.Namespace, value: Any) -> Any:
    """A report's strings, in lists and mappings, with `-` for the temporary file."""
    return _replaced(value, getattr(args, "kept", NAME), NAME)


def _copied(folder: str, by_name: bool) -> str:
    path = os.path.join(folder, "data")
    try:
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        raise BadInput(
            f"{_TOLD} cannot be kept in {folder}: {error.strerror}; set TMPDIR to a folder with "
            "more room"
        ) from error
    with open(path, "rb") as file:
        line = file.readline(1 << 20)  # Parquet has no lines, and may be of any size
    if not line:
        raise BadInput(f"{_TOLD} is empty (0 bytes)")
    if line.startswith((PARQUET, ORC)):
        return path
    if line.startswith(tuple(packing.magic for packing in PACKED.values())):
        raise BadInput(f"{_TOLD} is compressed; pipe it through gzip -dc or its like first")
    if not by_name:
        return path
    suffix = ".jsonl" if line.startswith(b"{") else ".tsv" if b"\t" in line else ".csv"
    named = path + suffix  # readers know text by its name
    os.rename(path, named)
    return named


def _replaced(value: Any, old: str, new: str) -> Any:
    """The value, a string or nested lists and mappings, with every string that equals `old` new."""
    if isinstance(value, dict):
        return {name: _replaced(item, old, new) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, old, new) for item in value]
    return new if value == old else value
