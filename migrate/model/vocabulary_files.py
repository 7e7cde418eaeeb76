"""The files from which a graph fills its lookup tables, and which of them it may read.

A vocabulary becomes part of the model and is published with it, and the author of the graph may
have named any file of the machine on which it is converted. So the graph may read only

1. an asset of a SavedModel, in `assets` beside it
2. a path that the caller also names, by --asset or `assets`, wherever it is
3. a path in the graph's own directory or below; a relative one begins there
4. else a file of the same base name in that directory or its `assets`: one that was copied along
   with a checkpoint. This is a guess, and a note says so. Two paths never get one file

Each is a regular file of at most MOST bytes, and except in 2 not a link out of the directory.
"""

from __future__ import annotations

import os
import shlex
import stat
from typing import Any, Dict, List, Optional

from migrate.graph.metagraph import Graph, Node
from migrate.graph.tensors import constant_array
from semisync.common.errors import BadInput
from semisync.storage.remote import is_remote
from semisync.storage.within import within

MOST = 1 << 30  # bytes


def add_assets(group: Any) -> None:
    """Declares --asset, of a parser or a group."""
    group.add_argument(
        "--asset",
        metavar="FILE",
        action="append",
        default=[],
        help="let the graph have this file, which it names as the vocabulary of a lookup table; "
        "without it, it gets those of its own directory alone; may be repeated",
    )


class VocabularyFiles:
    """The vocabulary files of one graph.

    Attributes:
        notes: a sentence on each guess.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph, self._home = graph, os.path.dirname(graph.path)
        self._guessed: Dict[str, str] = {}

    @property
    def notes(self) -> List[str]:
        """A sentence on each guess."""
        return [
            f"a vocabulary is a guess: the graph names {path}, and {place} has the same name; "
            f"--asset {shlex.quote(path)} takes the file that is named"
            for place, path in self._guessed.items()
        ]

    def of(self, table: str, named: Node) -> str:
        """The path of a lookup table's file, whose name is the value of the node `named`.

        Raises:
            BadInput: the graph may not read it.
        """
        asset = self._graph.assets.get(named.name)
        if asset is None:
            path = self._constant(named)
            place = self._named(path, self._home, path) or self._guess(path)
        else:
            folder = os.path.join(self._home, "assets")
            path = os.path.join(folder, asset)
            place = self._named(path, folder, asset)
        where = f"{self._graph.path}: the lookup table {table!r} is filled from {path}"
        if place is None:
            raise BadInput(f"{where}, {self._elsewhere(path)}")
        _check(where if place == path else f"{where}, here {place}", place)
        return place

    def _constant(self, named: Node) -> str:
        path = constant_array(self._graph, named)[()]
        if not isinstance(path, bytes):
            raise BadInput(f"{self._graph.path}: {named.name!r} is not the name of a file")
        return os.fsdecode(path)

    def _named(self, path: str, folder: str, name: str) -> Optional[str]:
        """The path of the file itself, `name` below `folder`; None if it is absent or forbidden."""
        if "\0" not in path and os.path.abspath(path) in self._graph.admitted:
            return os.path.abspath(path)
        place = within(folder, name)
        # lexists: a dangling link is this file, which `_check` refuses; it is not an absent one.
        return place if place is not None and os.path.lexists(place) else None

    def _guess(self, path: str) -> Optional[str]:
        """The path of a file with the same base name; None if there is none."""
        base = os.path.basename(path)
        places = (within(self._home, name) for name in (f"assets/{base}", base) if base)
        place = next((one for one in places if one is not None and os.path.lexists(one)), None)
        # Two vocabularies of one base name: to guess would fill both from one file.
        if place is not None and self._guessed.setdefault(place, path) != path:
            raise BadInput(
                f"{self._graph.path} names two files, {self._guessed[place]} and {path}, and "
                f"{place} has the name of both; name each that it gets with --asset"
            )
        return place

    def _elsewhere(self, path: str) -> str:
        """The end of the error for a path that the graph may not read: why, and what to do."""
        copy = os.path.join(self._home, os.path.basename(path))
        if is_remote(self._home):
            copy = f"{os.path.basename(path)} beside a copy of the graph on disk"
        return (
            f"which is not in the graph's directory, or is a link out of it; if the model shall "
            f"have that file, type --asset {shlex.quote(path)} (in Python: assets=[...]), or put "
            f"it there, as {copy}"
        )


def _check(where: str, place: str) -> None:
    """Raises BadInput unless `place` is a file that can be read at once and kept."""
    try:
        status = os.stat(place)
    except OSError as error:
        raise BadInput(f"{where}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{where}, which is not a regular file; expected a text file")
    if status.st_size > MOST:
        raise BadInput(f"{where}, which has {status.st_size} bytes; expected at most {MOST}")
