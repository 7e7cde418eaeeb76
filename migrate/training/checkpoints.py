"""A training's checkpoints: written while it goes on, whole or not there, the newest few kept.

    FOLDER/step-00001200/
        state.json          what is not a tensor, such as the position in the data
        __0_0.distcp ...    tensors, as torch.distributed.checkpoint writes them, a file per process
        PATH.tables/        the tables by raw ids at PATH in the module (migrate.id_tables)
        .metadata           written last, by renaming: a folder that has it is whole

1. `save` copies the tensors, and writes the tables by raw ids, which is all that the training waits
   for; a thread writes the copy. One checkpoint is written at a time: the next `save` first waits
   for it.
2. Once one is whole, rank 0 removes all but the newest `keep`.
3. A process that dies while it writes leaves a folder without .metadata, which is not read and the
   next `save` of that step writes again.

All processes call `save`, `load` and `wait`, with the same steps. The tensors' names and sizes do
not depend on how many processes there are, so that another number of them can go on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from concurrent.futures import Future
from typing import Any, Dict, List, Mapping, Optional

import torch
import torch.distributed as dist
from torch.distributed import checkpoint as dcp

from migrate import id_tables
from migrate.id_tables.embeddings import IdEmbeddings
from migrate.targets import INDEXES
from migrate.targets.reading.dcp_metadata import read_metadata
from migrate.targets.reading.torch_readers import read
from migrate.training.distributed.processes import rank
from migrate.training.staging import Copies
from semisync.common import json_text
from semisync.common.errors import BadInput, SemisyncError, UsageError
from semisync.common.files import write_text
from semisync.common.sentences import words_of

CHECKPOINTS, BEST = "checkpoints", "best"  # in the folder of a training
_NAME = re.compile(r"step-(\d{8,})")
_STATE, _WHOLE = "state.json", INDEXES["dcp"]


class Checkpoints:
    """The checkpoints of one folder.

    Args:
        folder: made where it is not there.
        keep: how many of the newest are kept.
        group: of processes, for writing, while they train in another group; None: there is one
            process.

    Examples:
        >>> from migrate.training import Checkpoints
        >>> checkpoints, weight = Checkpoints("steps"), torch.ones(2)
        >>> checkpoints.save(7, {"weight": weight}, {"epoch": 1})
        >>> checkpoints.wait()
        >>> checkpoints.load(7, {"weight": torch.zeros(2)})
        >>> checkpoints.steps, checkpoints.state(7)
        ([7], {'epoch': 1})
    """

    def __init__(self, folder: str, keep: int = 3, group: Any = None) -> None:
        self._folder, self._keep, self._group = folder, keep, group
        self._stager = Copies()
        self._writing: Optional[Future] = None

    @property
    def steps(self) -> List[int]:
        """The steps of those that are whole, ascending."""
        return whole_steps(self._folder)

    def path(self, step: int) -> str:
        """The folder of one checkpoint.

        Args:
            step: its step.

        Returns:
            A path.
        """
        return os.path.join(self._folder, f"step-{step:08d}")

    def save(
        self,
        step: int,
        tensors: Mapping[str, Any],
        state: Mapping[str, Any],
        tables: Optional[Mapping[str, IdEmbeddings]] = None,
    ) -> None:
        """Begins to write a checkpoint.

        Args:
            step: its step.
            tensors: by name, plain or sharded.
            state: of JSON's types, the same on all processes.
            tables: by raw ids, by path.

        Raises:
            SemisyncError: the one before it could not be written.
        """
        self.wait()
        path = self.path(step)
        if rank() == 0:
            shutil.rmtree(path, ignore_errors=True)  # of a process that died
            os.makedirs(path)
            write_text(os.path.join(path, _STATE), json.dumps(state))
        if self._group is not None:
            dist.barrier()
        for name, one in (tables or {}).items():
            id_tables.save(one, self._tables(step, name))
        writing = dcp.async_save(
            dict(tensors),
            storage_writer=dcp.FileSystemWriter(path),
            process_group=self._group,
            async_stager=self._stager,
            no_dist=self._group is None,
        )
        assert isinstance(writing, Future)  # the copy is made
        self._writing = writing

    def wait(self) -> None:
        """Waits until what `save` began is whole.

        Raises:
            SemisyncError: it could not be written.
        """
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            writing.result()
        except BaseException as error:  # DCP's own is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            raise SemisyncError(
                f"{self._folder}: a checkpoint was not written: {words_of(error)}"
            ) from error
        if rank() == 0:
            for step in self.steps[: -self._keep]:
                os.remove(os.path.join(self.path(step), _WHOLE))  # from now on it is none
                shutil.rmtree(self.path(step))

    def keep(self, step: int, folder: str) -> None:
        """Keeps a whole checkpoint in another folder, and no other there; by links where it can.

        Args:
            step: its step.
            folder: the other folder.
        """
        source, to = self.path(step), os.path.join(folder, os.path.basename(self.path(step)))
        if step not in whole_steps(folder):
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(source, to, copy_function=_linked, ignore=_whole_alone)
            _linked(os.path.join(source, _WHOLE), os.path.join(to, _WHOLE))
        for other in os.listdir(folder):
            if other != os.path.basename(to):
                shutil.rmtree(os.path.join(folder, other))

    def state(self, step: int) -> Dict[str, Any]:
        """What `save` was given as `state`.

        Args:
            step: of a whole checkpoint.

        Returns:
            A dict.

        Raises:
            BadInput: it is damaged.
        """
        path = os.path.join(self.path(step), _STATE)
        try:
            return json_text.read(path)
        except (OSError, ValueError) as error:
            raise BadInput(f"{path} cannot be read ({error}); remove its folder") from error

    def sizes(self, step: int) -> Dict[str, torch.Size]:
        """The sizes of a checkpoint's tensors.

        Args:
            step: of a whole checkpoint.

        Returns:
            {name: torch.Size}.

        Raises:
            BadInput: it cannot be read.
        """
        try:
            found = read_metadata(self.path(step)).state_dict_metadata
            return {name: one.size for name, one in found.items()}  # type: ignore[union-attr]
        except (BadInput, AttributeError) as error:  # the latter of what is no tensor
            raise BadInput(
                f"{self.path(step)} cannot be read ({error}); without it the one before is taken"
            ) from error

    def load(
        self,
        step: int,
        tensors: Dict[str, Any],
        tables: Optional[Mapping[str, IdEmbeddings]] = None,
    ) -> None:
        """Fills tensors and tables in place.

        Args:
            step: of a whole checkpoint.
            tensors: by name.
            tables: by raw ids, by path.

        Raises:
            BadInput: one is missing, of another size, or damaged.
        """
        read(self.path(step), tensors)
        for name, one in (tables or {}).items():
            id_tables.load(one, self._tables(step, name))

    def _tables(self, step: int, name: str) -> str:
        return os.path.join(self.path(step), f"{name}.tables")


def whole_steps(folder: str) -> List[int]:
    """The steps of the whole checkpoints in a folder, ascending."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [(_NAME.fullmatch(name), name) for name in names]
    return sorted(
        int(match[1])
        for match, name in found
        if match is not None and os.path.exists(os.path.join(folder, name, _WHOLE))
    )


def _linked(source: str, to: str) -> None:
    try:
        os.link(source, to)
    except OSError:  # the file system has no links
        shutil.copyfile(source, to)


def _whole_alone(folder: str, names: List[str]) -> List[str]:
    return [_WHOLE] if _WHOLE in names else []


def refuse_existing(folder: str) -> None:
    """Raises UsageError if there is a checkpoint, from which a training could go on."""
    steps = whole_steps(folder)
    if steps:
        raise UsageError(
            f"{folder} has a training up to step {steps[-1]:,}; go on with it by --resume, or name "
            "another place"
        )
