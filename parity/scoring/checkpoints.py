"""What `migrate` knows of a checkpoint: which one a directory names, and its graph's two ends.

`migrate` is imported only where it is asked, as its extra, torch, is more than scores need.
"""

import contextlib
import os
from typing import Any, Iterator

from semisync.common.errors import MissingExtra, UsageError

_LISTED = 8


def prefix_of(path: str) -> str:
    """The checkpoint's prefix; of a directory the one that its file `checkpoint` names.

    Raises: BadInput where it names none, UsageError for a SavedModel.
    """
    if not os.path.isdir(path):
        return path
    if os.path.isfile(os.path.join(path, "saved_model.pb")):
        raise UsageError(f"{path} is a SavedModel; --saved-model names it")
    with _extra("to name a checkpoint by its directory"):
        from migrate.checkpoint.directory import checkpoint_prefix
    return checkpoint_prefix(path)


def likely_outputs(meta: str) -> str:
    """A listing of the tensors that a MetaGraph's scores may be."""
    found = [
        f"{one.tensor} ({one.why if one.what == 'end' else f'{one.what} {one.why}'})"
        for one in _interface(meta).outputs
    ]
    return _listing(found) or "none that is known"


def possible_inputs(meta: str, output: str) -> str:
    """A listing of the tensors that can be fed, those that the tensor `output` depends on."""
    found = _interface(meta)
    return _listing([one.name for one in found.needed(output)]) or "none that is known"


def _interface(meta: str) -> Any:
    with _extra("to look into the graph"):
        from migrate.graph.interface import find_interface
        from migrate.graph.metagraph import read_graph
    return find_interface(read_graph(meta))


def _listing(names: "list[str]") -> str:
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return ", ".join([*names[:_LISTED], *more])


@contextlib.contextmanager
def _extra(purpose: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the Python package {error.name!r} is not installed, {purpose}; "
            "run: pip install 'semisync[report,torch]'"
        ) from error
