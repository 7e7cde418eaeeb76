"""The score of every row at the moment before the model was trained on it: `--scores FILE`.

    KEY, DAY   the row's, as the data has them; DAY with --day
    LABEL      0 or 1
    score      float32, the probability of the logit
    logit      float32

`semisync parity` compares such files, joined by the key, with those of another training.

1. A process keeps the rows that it has scored, and writes them to OUT/scores/STEP.RANK.parquet
   before it begins the checkpoint of that step.
2. A training that goes on from a checkpoint first removes the parts of later steps: their rows will
   be scored again.
3. At the end rank 0 joins the parts: one row per row trained on, in the order of the parts.
"""

from __future__ import annotations

import os
import re
from typing import Any, List, Optional, Tuple

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from migrate.training.distributed.processes import rank
from migrate.training.task import Batch
from parity.inputs.logits import sigmoid
from semisync.common.errors import UsageError
from semisync.common.files import replacing

_FOLDER = "scores"  # in the folder of a training
_PART = re.compile(r"(\d+)\.(\d+)\.parquet")


class Scores:
    """Writes the score of every row before the step on it, for `semisync parity`.

    Args:
        path: of the file.
        out: the training's folder.
        key, label, day: the names of the columns; a day of None: there is none.

    Raises:
        UsageError: a column has the name of a written one.

    Examples:
        >>> from migrate.training import Batch, Scores
        >>> scores = Scores("scores.parquet", "trained", key="row", label="clicked", day=None)
        >>> batch = Batch(None, labels=torch.tensor([0.0, 1.0]), keys=["a", "b"])
        >>> scores.add(batch, logits=torch.tensor([-1.0, 1.0]))
        >>> scores.flush(step=1)
        >>> scores.write()
    """

    def __init__(self, path: str, out: str, key: str, label: str, day: Optional[str]) -> None:
        for name in (key, label, day):
            if name in ("score", "logit"):
                raise UsageError(f"the column {name!r} cannot stand beside the scores; rename it")
        self._path, self._folder = path, os.path.join(out, _FOLDER)
        self._key, self._label, self._day = key, label, day
        self._kept: List[pa.Table] = []

    def add(self, batch: Batch, logits: torch.Tensor) -> None:
        """Keeps the scores of a batch, before its step.

        Args:
            batch: with labels and keys.
            logits: [rows] or [rows, 1].
        """
        logit = logits.detach().reshape(-1).float().cpu().numpy()
        assert batch.labels is not None
        labels = batch.labels.reshape(-1).cpu().numpy().astype(numpy.int8)
        columns = {self._key: batch.keys, self._label: labels}
        if self._day is not None:
            columns[self._day] = batch.days
        score = sigmoid(logit).astype(numpy.float32)
        self._kept.append(pa.table({**columns, "score": score, "logit": logit}))

    def flush(self, step: int) -> None:
        """Writes the kept scores, as a part of that step; every process calls it.

        Args:
            step: the number of steps so far.
        """
        if self._kept:
            os.makedirs(self._folder, exist_ok=True)
            with replacing(os.path.join(self._folder, f"{step:08d}.{rank()}.parquet")) as path:
                pq.write_table(pa.concat_tables(self._kept), path)
        self._kept = []

    def go_on(self, step: int, rows: int) -> None:
        """Removes the parts of later steps; rank 0 calls it before any process trains.

        Args:
            step: of the checkpoint.
            rows: the number of rows trained on up to it.

        Raises:
            UsageError: the parts up to it do not have these rows.
        """
        parts = self._parts()
        for _, path in (part for part in parts if part[0][0] > step):
            os.remove(path)
        kept = [path for place, path in parts if place[0] <= step]
        found = sum(pq.read_metadata(path).num_rows for path in kept)
        if found != rows:
            raise UsageError(
                f"{self._folder} has the scores of {found:,} of the {rows:,} rows trained on so "
                "far: go on without --scores, or train from scratch with it"
            )

    def write(self) -> None:
        """Joins the parts; rank 0 calls it once every process has written its own.

        Raises:
            UsageError: no row was scored.
        """
        parts = [pq.ParquetFile(path) for _, path in self._parts()]
        if not parts:
            raise UsageError("no row was scored: the module gives no scores, or the data no labels")
        schema = parts[0].schema_arrow
        with replacing(self._path) as path, pq.ParquetWriter(path, schema) as writer:
            for part in parts:
                writer.write_table(part.read())

    def _parts(self) -> List[Tuple[Tuple[int, int], str]]:
        """((step, rank), path) of each, in order."""
        found: List[Any] = []
        for name in os.listdir(self._folder) if os.path.isdir(self._folder) else ():
            matched = _PART.fullmatch(name)
            if matched:
                place = (int(matched[1]), int(matched[2]))
                found.append((place, os.path.join(self._folder, name)))
        return sorted(found)
