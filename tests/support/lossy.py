"""Conversions as a converter with a fault would write them: whole, with something missing."""

import dataclasses
import hashlib
import pathlib

from torch.distributed import checkpoint as dcp

import migrate
from migrate.targets.reading import open_target


def lose(directory, fqn, rows=0, reason=None):
    """Takes a tensor, or its last `rows` rows, out of a conversion's data and its manifest.

    Args:
        reason: why it is dropped, in the manifest; None: it does not say.
    """
    directory = pathlib.Path(directory)
    manifest = migrate.read_manifest(directory)
    reader = open_target(str(directory), manifest.target)
    (lost,) = [one for one in manifest.tensors if one.fqn == fqn]
    tensors = {
        name: reader.rows(name, 0, stored.shape[0] if stored.shape else 1).reshape(stored.shape)
        for name, stored in reader.tensors.items()
    }
    manifest.tensors.remove(lost)
    for one in [one for one in manifest.renamed if one.fqn == fqn]:
        manifest.renamed.remove(one)
        del tensors[one.name]
    if rows:
        tensors[fqn] = kept = tensors[fqn][:-rows].contiguous()
        digest = hashlib.sha256(kept.numpy().tobytes()).hexdigest()
        piece = dataclasses.replace(lost.pieces[0], rows=len(kept), sha256=digest)
        shape = list(kept.shape)
        manifest.tensors.append(dataclasses.replace(lost, shape=shape, pieces=[piece]))
    else:
        del tensors[fqn]
    if reason is not None:
        manifest.dropped[lost.source] = reason
    for path in [*directory.glob("*.distcp"), directory / ".metadata"]:
        path.unlink()
    dcp.save(tensors, checkpoint_id=directory, no_dist=True)
    index = (directory / ".metadata").read_bytes()
    manifest.index_sha256 = hashlib.sha256(index).hexdigest()
    (directory / "manifest.json").write_text(manifest.to_json())
    return lost.source
