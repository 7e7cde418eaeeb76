"""Plans, conversions, and what stands in their directories."""

import contextlib
import pathlib
import shutil

import numpy as np
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torchrec import KeyedJaggedTensor

import migrate
from migrate.targets.reading import open_target
from migrate.targets.reading.torch_readers import read as read_states
from migrate.torchrec import (
    embedding_bag_collection,
    id_map,
    load,
    managed_collision_collection,
    map_features,
)


def make_plan(source, ids="rows", **options):
    """The plan of a checkpoint, which is closed again."""
    with migrate.open_checkpoint(source) as checkpoint:
        return migrate.plan(checkpoint, ids=ids, **options)


def convert(source, out, ids="rows", **options):
    """Converts as planned; returns the manifest. options: of migrate.convert."""
    return migrate.convert(make_plan(source, ids), out, **options)


def load_all(directory, path):
    """Everything in the checkpoint, as torch's own converter gives it: a nested dict."""
    dcp_to_torch_save(str(directory), str(path))
    return torch.load(path, weights_only=True)


def contents(directory):
    """The bytes of every file."""
    return {path.name: path.read_bytes() for path in pathlib.Path(directory).iterdir()}


class Stop(BaseException):
    """Like KeyboardInterrupt, which pytest would take for its own."""


def interrupt(plan, out, after, **options):
    """Converts until `after` parts are in the journal."""
    seen = []

    def stop(*_):
        seen.append(1)
        if len(seen) == after:
            raise Stop

    with contextlib.suppress(Stop):
        migrate.convert(plan, out, progress=stop, **options)
    assert len(seen) == after


def without_graph(folder, name, tmp_path):
    """Prefix of a copy of a checkpoint that lacks its MetaGraph."""
    for file in folder.glob(f"{name}.[id]*"):
        shutil.copy(file, tmp_path)
    return tmp_path / name


def rows_of(directory, fqn):
    """All rows of a tensor of a converted directory."""
    reader = open_target(str(directory), "dcp")
    return reader.rows(fqn, 0, reader.tensors[fqn].shape[0]).numpy()


def look_up(directory, table, ids):
    """The row of each id, by the modules that would train on."""
    manifest = migrate.read_manifest(directory)
    mode = next(one.ids.mode for one in manifest.tables if one.name == table)
    features = KeyedJaggedTensor(
        ["f"], torch.as_tensor(np.asarray(ids, np.int64)), lengths=torch.ones(len(ids)).long()
    )
    if mode == "rows":
        module = embedding_bag_collection(str(directory), {table: ["f"]})
        load(module, str(directory))
        pooled = module(map_features(features, {"f": id_map(str(directory), table)}))
    else:
        module = managed_collision_collection(str(directory), {table: ["f"]}).eval()
        load(module, str(directory))
        pooled = module(features)[0]
    return pooled["f"].detach().numpy()


def slots_of(directory, table):
    """{slot: rows of the target} of one table."""
    manifest = migrate.read_manifest(directory)
    start = f"optim.state.{next(one.fqn for one in manifest.tables if one.name == table)}."
    states = {
        tensor.fqn[len(start) :]: torch.empty(tensor.shape)
        for tensor in manifest.tensors
        if tensor.fqn.startswith(start)
    }
    read_states(str(directory), {start + name: tensor for name, tensor in states.items()})
    return {name: tensor.numpy() for name, tensor in states.items()}
