"""Tensors filled by torch's own readers, which give each process its part of them.

Left alone these unpickle `.metadata` freely, and so every object in a data file that is no tensor.
Here they are given the result of `dcp_metadata`, and fill tensors alone.

Source: torch/distributed/checkpoint/{filesystem,default_planner,state_dict_loader}.py, torch 2.13
"""

from __future__ import annotations

import glob
import importlib
import io
import os
import warnings
from typing import Any, Dict, Type

import torch.distributed as dist
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import ReadItem

from migrate.targets import INDEXES
from migrate.targets.reading.dcp_metadata import read_metadata
from semisync.common.errors import BadInput, UsageError
from semisync.common.extras import extra
from semisync.common.sentences import words_of
from semisync.storage.files import size_of
from semisync.storage.folders import joined
from semisync.storage.remote import is_remote


def read(directory: str, state_dict: Dict[str, Any], advice: str = "convert it again") -> None:
    """Reads the tensors of `state_dict` in place; where that fails, raises BadInput in a sentence
    that ends with the `advice`."""
    reader = _reader(os.fspath(directory))
    try:
        with warnings.catch_warnings():  # no process group is intended
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            dcp.load(
                state_dict,
                storage_reader=reader,
                planner=_TensorsAlone(),
                no_dist=not dist.is_initialized(),
            )
    except CheckpointException as error:  # no Exception, and its text holds tracebacks
        causes = "; ".join(
            f"rank {rank}: {words_of(failure[0])}"
            for rank, failure in sorted(error.failures.items())
        )
        raise BadInput(f"{directory} cannot be loaded: {causes}; {advice}") from error
    except Exception as error:  # torch raises what its unpickler or file system raises
        raise BadInput(f"{directory} cannot be loaded: {words_of(error)}; {advice}") from error


class _TensorsAlone(dcp.DefaultLoadPlanner):
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Refuses an object, which torch would unpickle."""
        raise BadInput(f"{read_item.dest_index.fqn!r} is not a tensor")


def _reader(directory: str) -> dcp.StorageReader:
    """torch's reader of the format that stands in `directory`, or behind a URL, if it is a DCP."""
    if is_remote(directory):
        if size_of(joined(directory, INDEXES["safetensors"])) is not None:
            raise UsageError(
                f"{directory} has safetensors files, which torch loads from disk alone; copy them"
            )
        from torch.distributed.checkpoint._fsspec_filesystem import FsspecReader

        return _of_dcp(FsspecReader, directory)
    if not glob.glob(os.path.join(glob.escape(directory), "*.safetensors")):
        return _of_dcp(dcp.FileSystemReader, directory)
    with extra("torch", f"to read {directory}"):
        importlib.import_module("safetensors")  # which torch's reader imports later
    return dcp.HuggingFaceStorageReader(directory)


def _of_dcp(kind: Type[dcp.FileSystemReader], directory: str) -> dcp.FileSystemReader:
    class Reader(kind):  # type: ignore[misc, valid-type]
        def read_metadata(self, *_: Any, **__: Any) -> Metadata:
            """Reads it by our unpickler; never a rank's own, which no `convert` writes."""
            found = read_metadata(directory)
            found.storage_meta = getattr(found, "storage_meta", None) or StorageMeta()
            found.storage_meta.load_id = self.load_id
            return found

    return Reader(directory)
