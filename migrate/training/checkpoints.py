"""A training's checkpoints: written while it goes on, whole or not there, the newest few kept.

    FOLDER/step-00001200/
        state.json          the state besides tensors, such as the position in the data
        __0_0.distcp ...    tensors, as torch.distributed.checkpoint writes them, a file per process
        PATH.tables/        the tables by raw ids at PATH in the module (migrate.id_tables)
        digests.json        of all files (migrate.targets.digests)
        .metadata           written last, by renaming: a folder that has it is whole

1. `save` copies the tensors, and writes the tables by raw ids, which is all that the training waits
   for; a thread writes the copy. One checkpoint is written at a time: the next `save` first waits
   for it.
2. Once one is whole, rank 0 removes all but the newest `keep`.
3. A process that dies while it writes leaves a folder without .metadata, which is not read and the
   next `save` of that step writes again.
4. Files are compared with their digests before they are read. `newest` names a checkpoint that is
   damaged, sets it aside as step-00001200.damaged, and takes the one before.

All processes call `save`, `load`, `check`, `newest` and `wait`, with the same steps. The tensors'
names and sizes do not depend on how many processes there are, so that another number of them can go
on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import torch
import torch.distributed as dist
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystem

from migrate import id_tables
from migrate.id_tables.checkpoints import own_files
from migrate.id_tables.embeddings import IdEmbeddings
from migrate.targets import INDEXES, digests
from migrate.targets.reading.dcp_metadata import read_metadata
from migrate.targets.reading.torch_readers import read
from migrate.targets.work_directory import is_passing
from migrate.training.distributed.processes import from_first, rank, ranks
from migrate.training.staging import Copies
from semisync.common import json_text
from semisync.common.errors import BadInput, SemisyncError, UsageError
from semisync.common.files import write_text
from semisync.common.sentences import words_of
from semisync.common.terminal import say

CHECKPOINTS, BEST = "checkpoints", "best"  # in the folder of a training
_NAME = re.compile(r"step-(\d{8,})")
_STATE, _WHOLE = "state.json", INDEXES["dcp"]
_TABLES, _AWAY = ".tables", ".damaged"  # end the names of folders, the latter of one set aside


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
        self._step = 0  # of the one that is written
        self._sound: Set[int] = set()

    @property
    def steps(self) -> List[int]:
        """The steps of those that are whole, ascending."""
        return whole_steps(self._folder)

    def path(self, step: int) -> str:
        """The folder of one checkpoint.

        Args:
            step: the step of the checkpoint.

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
            step: the step of the checkpoint.
            tensors: by name, plain or sharded.
            state: of JSON's types, the same on all processes.
            tables: by raw ids, by path.

        Raises:
            SemisyncError: it, or the one before it, could not be written.
        """
        self.wait()
        path = self.path(step)
        self._sound.discard(step)
        written = [_STATE] if rank() == 0 else []
        with _writing(path):
            if rank() == 0:
                shutil.rmtree(path, ignore_errors=True)  # of a process that died
                os.makedirs(path)
                write_text(os.path.join(path, _STATE), json.dumps(state))
            if self._group is not None:
                # The others write into the folder once rank 0 has made it.
                dist.barrier()
            for name, one in (tables or {}).items():
                id_tables.save(one, self._tables(step, name))
                written += [f"{name}{_TABLES}/{file}" for file in own_files(one)]
        writing = dcp.async_save(
            dict(tensors),
            storage_writer=_Writer(path, written, ranks()),
            process_group=self._group,
            async_stager=self._stager,
            no_dist=self._group is None,
        )
        assert isinstance(writing, Future)  # the copy is made
        self._writing, self._step = writing, step

    def wait(self) -> None:
        """Waits until the checkpoint begun by `save` is whole.

        Raises:
            SemisyncError: it could not be written.
        """
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        with _writing(self.path(self._step)):
            writing.result()
        if rank() == 0:
            for step in self.steps[: -self._keep]:
                os.remove(os.path.join(self.path(step), _WHOLE))  # from now on it does not count
                shutil.rmtree(self.path(step))

    def keep(self, step: int, folder: str) -> None:
        """Keeps a whole checkpoint in another folder, and no other there; by links where it can.

        Args:
            step: the step of the checkpoint.
            folder: the other folder.
        """
        source, to = self.path(step), os.path.join(folder, os.path.basename(self.path(step)))
        if step not in whole_steps(folder):
            # What an interrupted copy left.
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(source, to, copy_function=_linked, ignore=_whole_alone)
            # Last, as when a checkpoint is written: a copy that was interrupted is not whole.
            _linked(os.path.join(source, _WHOLE), os.path.join(to, _WHOLE))
        for other in os.listdir(folder):
            if other != os.path.basename(to):
                shutil.rmtree(os.path.join(folder, other))

    def newest(self) -> Optional[int]:
        """The step of the newest whole checkpoint that is as it was written.

        Later ones that are not are named, and set aside.

        Returns:
            None where there is no whole one.

        Raises:
            BadInput: all are damaged.
        """
        # Rank 0's, since all compare the same checkpoints, together: `_damage` is a collective
        # call.
        steps: Any = from_first(self.steps)
        damaged: List[Tuple[int, str]] = []
        for step in reversed(steps):
            found = self._damage(step)
            if found is None:
                if rank() == 0:
                    self._set_aside(damaged)
                return step
            damaged.append((step, found))
        if damaged:
            raise BadInput(
                f"{damaged[0][1]}; nor is one before it sound: train into another folder"
            )
        return None

    def _set_aside(self, damaged: Sequence[Tuple[int, str]]) -> None:
        for step, found in damaged:
            away = self.path(step) + _AWAY
            shutil.rmtree(away, ignore_errors=True)
            os.rename(self.path(step), away)
            say(f"{found}; the one before it is taken, and this one is now {away}", error=True)

    def check(self, step: int) -> None:
        """Compares a checkpoint's files with their digests, once.

        Args:
            step: of a whole checkpoint.

        Raises:
            BadInput: one is not as it was written.
        """
        found = self._damage(step)
        if found is not None:
            raise BadInput(f"{found}; train --resume takes the checkpoint before it")

    def _damage(self, step: int) -> Optional[str]:
        """The damage that any process finds in its share of the files."""
        if step in self._sound:
            return None
        own = digests.damage(self.path(step), rank(), ranks())
        every: List[Any] = [own]
        if ranks() > 1:
            every = [None] * ranks()
            dist.all_gather_object(every, own)
        found = next(filter(None, every), None)
        if found is None:
            self._sound.add(step)
        return found

    def state(self, step: int) -> Dict[str, Any]:
        """The `state` given to `save`.

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
        except (BadInput, AttributeError) as error:  # the latter of the state besides tensors
            raise BadInput(
                f"{self.path(step)} cannot be read ({error}); remove this checkpoint, and --resume "
                "takes the one before"
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
        self.check(step)
        read(self.path(step), tensors, "remove this checkpoint, and --resume takes the one before")
        for name, one in (tables or {}).items():
            id_tables.load(one, self._tables(step, name))

    def _tables(self, step: int, name: str) -> str:
        return os.path.join(self.path(step), f"{name}{_TABLES}")


class _Writer(dcp.FileSystemWriter):
    """torch's, which leaves digests of all files.

    Args:
        beside: the files that this process has written in the folder already.
    """

    def __init__(self, folder: str, beside: Iterable[str], processes: int) -> None:
        super().__init__(folder)
        self.fs = _Files(folder, processes)
        self._folder, self._beside = folder, list(beside)

    def write_data(self, plan: Any, planner: Any) -> Any:
        """As torch's, and the digests of this process."""
        try:
            written = super().write_data(plan, planner)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # which torch's writer hides
                raise error.__context__ from error
            raise
        names = {result.storage_data.relative_path for result in written.value()}
        digests.write_part(self._folder, [*sorted(names), *self._beside], rank())
        return written


class _Files(FileSystem):
    def __init__(self, folder: str, processes: int) -> None:
        super().__init__()
        self._folder, self._processes = folder, processes

    def rename(self, path: Any, new_path: Any) -> None:
        """torch's last step, in one process: it makes the checkpoint whole."""
        digests.join_parts(self._folder, self._processes, {_WHOLE: digests.digest(path)})
        super().rename(path, new_path)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """A failure as a SemisyncError that names the checkpoint and says what to do; unfinished files
    are removed."""
    try:
        yield
    except (CheckpointException, OSError, SemisyncError) as error:
        causes: List[Any] = [error]
        if isinstance(error, CheckpointException):  # which is no Exception
            causes = [failure[0] for failure in error.failures.values()]
        elif isinstance(error, SemisyncError):
            causes = [error.__cause__ or error]
        said = "; ".join(dict.fromkeys(map(words_of, causes)))
        room = "make room there and " if any(map(is_passing, causes)) else ""
        if rank() == 0:
            shutil.rmtree(path, ignore_errors=True)
        raise SemisyncError(
            f"{path}: the checkpoint was not written: {said}; {room}go on with --resume"
        ) from error


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


def refuse_existing(out: str, resume: bool = False) -> None:
    """Raises UsageError if a training has been in the folder, and this is not to go on with it.

    The best checkpoint alone, without those to go on from, would be taken for the new training's.
    """
    folder, best = os.path.join(out, CHECKPOINTS), os.path.join(out, BEST)
    steps = whole_steps(folder)
    if steps and not resume:
        raise UsageError(
            f"{folder} has a training up to step {steps[-1]:,}; go on with it by --resume, or name "
            "another place"
        )
    if not steps and whole_steps(best):
        raise UsageError(
            f"{best} is of a training whose {CHECKPOINTS} are gone; remove it, or name another "
            "place"
        )
