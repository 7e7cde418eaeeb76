"""A model's files: those that a path refers to, a checkpoint's graph, and their SHA-256.

The origin of a model is the SHA-256 of the files that distinguish it from others. A checkpoint's
index has the checksum of every tensor, and a conversion's manifest the SHA-256 of every table, so
that the large data files need not be read again.

`migrate` is imported only where it is needed, since its extra, torch, is more than scoring needs.
"""

import glob
import hashlib
import os
from typing import Any, Dict, Iterable, List, Optional, Tuple

from parity.io.identity import identify
from semisync.common.errors import BadInput, UsageError
from semisync.common.extras import extra
from semisync.common.sentences import some_of


def prefix_of(path: str) -> str:
    """The checkpoint's prefix; for a directory the one in its file `checkpoint`.

    Raises:
        BadInput: it names none.
        UsageError: a SavedModel.
    """
    if not os.path.isdir(path):
        return path
    if os.path.isfile(os.path.join(path, "saved_model.pb")):
        raise UsageError(f"{path} is a SavedModel; --saved-model names it")
    with extra("report,torch", "to name a checkpoint by its directory"):
        from migrate.checkpoint.paths import checkpoint_prefix
    return checkpoint_prefix(path)


def graph_of(prefix: str) -> str:
    """The MetaGraph beside a checkpoint; for a frozen graph the file itself.

    Raises:
        BadInput: a file with a graph whose variables have no values.
    """
    meta = f"{prefix}.meta"
    if os.path.isfile(meta) or not os.path.isfile(prefix):
        return meta
    with extra("report,torch", "to open a frozen graph"):
        from migrate.open import frozen_graph
    return prefix if frozen_graph(prefix) is not None else meta


def graph_files(checkpoint: str, meta: Optional[str], output: Optional[str]) -> Tuple[str, str]:
    """(the checkpoint's prefix, its MetaGraph), see `prefix_of` and `graph_of`.

    Raises:
        UsageError: no output is named; the message lists the likely ones.
    """
    prefix = prefix_of(checkpoint)
    meta = meta or graph_of(prefix)
    if not output:
        listed = f": {_likely_outputs(meta)}" if os.path.isfile(meta) else ""
        raise UsageError(f"--checkpoint needs --output, the tensor that scores{listed}")
    return prefix, meta


def _likely_outputs(meta: str) -> str:
    """A listing of the tensors of a MetaGraph that may be scores."""
    tensors = [
        f"{output.tensor} ({output.why if output.what == 'end' else f'{output.what} {output.why}'})"
        for output in _interface(meta).outputs
    ]
    return some_of(tensors, most=8) or "none that is known"


def of_saved_model(directory: str) -> Dict[str, Any]:
    """The origin of a SavedModel; raises BadInput if there is none."""
    if not os.path.isfile(os.path.join(directory, "saved_model.pb")):
        raise BadInput(f"{directory} is not a SavedModel, it has no saved_model.pb")
    below = glob.glob(os.path.join(glob.escape(directory), "**"), recursive=True)
    files = [path for path in below if os.path.isfile(path) and ".data-" not in path]
    return _origin("SavedModel", directory, files)


def of_checkpoint(prefix: str, meta: str) -> Dict[str, Any]:
    """The origin of a checkpoint and its MetaGraph; raises BadInput if one is missing."""
    stored = _stored(prefix)
    if not os.path.isfile(meta):
        raise BadInput(f"there is no MetaGraph {meta}; --meta names another")
    return _origin("checkpoint", prefix, [*stored, meta])


def of_conversion(directory: str, factory: Optional[str] = None) -> Dict[str, Any]:
    """The origin of a conversion and of the code that scores; a frozen graph has no manifest."""
    manifest, tables, model, constants = (
        os.path.join(directory, name)
        for name in ("manifest.json", "model.json", "model.py", "constants.npz")
    )
    if not (os.path.isfile(manifest) or os.path.isfile(model)):
        raise BadInput(f"{directory} has no manifest.json; give what `semisync convert` wrote")
    assets = glob.glob(os.path.join(glob.escape(directory), "assets", "*"))
    code = [model, constants, *assets] if factory is None else [factory.rpartition(":")[0]]
    files = [manifest, tables, *code]
    found = _origin("TorchRec", directory, [file for file in files if os.path.isfile(file)])
    return {**found, "factory": factory}


def _interface(meta: str) -> Any:
    with extra("report,torch", "to look into the graph"):
        from migrate.graph.interface import find_interface
        from migrate.graph.metagraph import read_graph
    return find_interface(read_graph(meta))


def _stored(prefix: str) -> List[str]:
    """The index of a checkpoint, or the tables, one or several, of one in format V1."""
    literal = glob.escape(prefix)
    if os.path.isfile(prefix + ".index"):
        if not glob.glob(literal + ".data-?????-of-?????"):
            raise BadInput(f"{prefix} is not whole: it has an .index, and no .data file beside it")
        return [prefix + ".index"]
    tables = [prefix] if os.path.isfile(prefix) else glob.glob(literal + "-?????-of-?????")
    if not tables:
        raise BadInput(f"there is no checkpoint {prefix}: {prefix}.index does not exist")
    return tables


def _origin(kind: str, path: str, files: Iterable[str]) -> Dict[str, Any]:
    hashed: List[Dict[str, str]] = [
        {"path": file, "sha256": identify(file).sha256} for file in sorted(set(files))
    ]
    whole = hashlib.sha256("".join(file["sha256"] for file in hashed).encode())
    return {"kind": kind, "path": path, "sha256": whole.hexdigest(), "files": hashed}
