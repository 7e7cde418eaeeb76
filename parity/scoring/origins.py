"""Which model it was: the SHA-256 of the files that tell two models apart.

A checkpoint's index has the checksum of every tensor, and a conversion's manifest the SHA-256 of
every table, so that neither needs its large data files read again.
"""

import glob
import hashlib
import os
from typing import Any, Dict, Iterable, List

from parity.io.identity import identify
from semisync.common.errors import BadInput


def of_saved_model(directory: str) -> Dict[str, Any]:
    """Of a SavedModel; BadInput where there is none."""
    if not os.path.isfile(os.path.join(directory, "saved_model.pb")):
        raise BadInput(f"{directory} is no SavedModel, it has no saved_model.pb")
    found = glob.glob(os.path.join(glob.escape(directory), "**"), recursive=True)
    return _origin(
        "SavedModel",
        directory,
        [file for file in found if os.path.isfile(file) and ".data-" not in file],
    )


def of_checkpoint(prefix: str, meta: str) -> Dict[str, Any]:
    """Of a checkpoint and its MetaGraph; BadInput where either is missing."""
    stored = _stored(prefix)
    if not os.path.isfile(meta):
        raise BadInput(f"there is no MetaGraph {meta}; --meta names another")
    return _origin("checkpoint", prefix, [*stored, meta])


def _stored(prefix: str) -> List[str]:
    """The index of a checkpoint, or the tables of one of format V1, which is one or several."""
    literal = glob.escape(prefix)
    if os.path.isfile(prefix + ".index"):
        if not glob.glob(literal + ".data-?????-of-?????"):
            raise BadInput(f"{prefix} is not whole: it has an .index, and no .data file beside it")
        return [prefix + ".index"]
    tables = [prefix] if os.path.isfile(prefix) else glob.glob(literal + "-?????-of-?????")
    if not tables:
        raise BadInput(f"there is no checkpoint {prefix}: {prefix}.index does not exist")
    return tables


def of_conversion(directory: str, factory: str) -> Dict[str, Any]:
    """Of what `semisync convert` wrote, and the file of the user's code where one is named."""
    manifest = os.path.join(directory, "manifest.json")
    if not os.path.isfile(manifest):
        raise BadInput(f"{directory} has no manifest.json; give what `semisync convert` wrote")
    code = factory.rpartition(":")[0]
    files = [manifest, os.path.join(directory, "model.json"), code]
    return {
        **_origin("TorchRec", directory, [file for file in files if os.path.isfile(file)]),
        "factory": factory,
    }


def _origin(kind: str, path: str, files: Iterable[str]) -> Dict[str, Any]:
    hashed: List[Dict[str, str]] = [
        {"path": file, "sha256": identify(file).sha256} for file in sorted(files)
    ]
    whole = hashlib.sha256("".join(file["sha256"] for file in hashed).encode())
    return {"kind": kind, "path": path, "sha256": whole.hexdigest(), "files": hashed}
