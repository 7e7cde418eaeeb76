"""Reports of a training: a line while it runs, a file of figures, TensorBoard's scalars.

    OUT/log.jsonl       a line per report: {"step": ..., "loss": ..., "auc": ..., ...}
    OUT/tensorboard     the same as scalars for TensorBoard

A training that goes on from a checkpoint takes back the reports of later steps.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from typing import Any, Dict, Mapping, Optional

from migrate.training.metrics import Figures
from semisync.common import json_text
from semisync.common.files import write_text
from semisync.common.progress import Progress
from semisync.encoding.crc32c import masked_value
from semisync.encoding.wire import encode_varint

LOG, BOARD = "log.jsonl", "tensorboard"


class Reporter:
    """Rank 0's; another rank has none.

    Args:
        step: the one that the training begins after.
        unit: of the speed.
    """

    def __init__(self, out: str, step: int, unit: str = "rows") -> None:
        self._progress, self._unit = Progress(sys.stdout), unit
        self._path = os.path.join(out, LOG)
        self._forget(step)
        self._board = _Board(os.path.join(out, BOARD), step)
        self._since, self._rows = time.monotonic(), 0

    def report(self, step: int, figures: Mapping[str, Any], rows: Optional[int] = None) -> None:
        """Writes a report to the terminal, the log and TensorBoard.

        Args:
            figures: of this step; None for unknown ones.
            rows: trained on since the start; None: no training took place since the last report.
        """
        now = time.monotonic()
        speeds = {}
        if rows is not None:
            speed = (rows - self._rows) / max(now - self._since, 1e-9)
            speeds, self._rows = {f"{self._unit} per second": speed}, rows
        self._since = now
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **figures}) + "\n")
        numbers = {k: float(v) for k, v in figures.items() if v is not None}
        self._board.add(step, {**numbers, **speeds})
        shown = [f"{name} {_text(value)}" for name, value in figures.items()]
        shown += [f"{speed:,.0f} {self._unit}/s" for speed in speeds.values()]
        self._progress.show(f"step {step:,}: {', '.join(shown)}")

    def end(self, text: str) -> None:
        """A line that stays."""
        self._progress.end(text)

    def close(self) -> None:
        """Writes the buffered rest."""
        self._progress.close()
        self._board.close()

    def _forget(self, step: int) -> None:
        """Removes the log's lines later than `step`."""
        if os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                lines = [line for line in file if _step(line) <= step]
            write_text(self._path, "".join(lines))


def _step(line: str) -> int:
    """The step of a line; of one that a killed process left unfinished, later than all."""
    try:
        return int(json_text.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return sys.maxsize


def measured(figures: Figures, prefix: str = "") -> Dict[str, Any]:
    """Figures in the form of a report, their names after `prefix`."""
    values = {
        "rows": figures.rows,
        "auc": figures.auc,
        "log loss": figures.loss,
        "normalised entropy": figures.entropy,
    }
    return {prefix + name: value for name, value in values.items()}


def _text(value: Any) -> str:
    return f"{value:.5f}" if isinstance(value, float) else "-" if value is None else f"{value:,}"


class _Board:
    """Appends scalars to a new file of `folder`; TensorBoard reads all of a folder's, in the order
    of their names. They are TFRecords of Event messages:

        record   uint64 length, masked crc32c of it, data, masked crc32c of that
        Event    1 wall_time double, 2 step int64, 3 file_version string, 5 summary,
                 7 session_log: 1 status, 1 of a start
        Summary  1 value: 1 tag string, 2 simple_value float

    torch.utils.tensorboard writes the same, but imports TensorFlow where it is installed.
    Source: tensorflow/core/util/event.proto, core/framework/summary.proto

    Args:
        step: the last that stands: earlier files' points of later steps are void.
    """

    def __init__(self, folder: str, step: int) -> None:
        os.makedirs(folder, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now * 1e6):017d}.{os.getpid()}"
        self._file = open(os.path.join(folder, name), "xb")  # noqa: SIM115
        self._write(0, b"\x1a" + _sized(b"brain.Event:2"))
        if step:  # a session log of a start, at which TensorBoard drops points of this step and on
            self._write(step + 1, b"\x3a" + _sized(b"\x08\x01"))
        self._file.flush()

    def add(self, step: int, scalars: Mapping[str, float]) -> None:
        """Appends a point to each curve."""
        values = b"".join(
            b"\x0a" + _sized(b"\x0a" + _sized(tag.encode()) + b"\x15" + struct.pack("<f", value))
            for tag, value in scalars.items()
        )
        self._write(step, b"\x2a" + _sized(values))
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, step: int, content: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + encode_varint(step) + content
        length = struct.pack("<Q", len(event))
        for piece in (length, event):
            self._file.write(piece + struct.pack("<I", masked_value(piece)))


def _sized(data: bytes) -> bytes:
    return encode_varint(len(data)) + data
