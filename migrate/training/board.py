"""TensorBoard's scalars, in the files that it reads: TFRecords of Event messages.

    record   uint64 length, masked crc32c of it, data, masked crc32c of that
    Event    1 wall_time double, 2 step int64, 3 file_version string, 5 summary
    Summary  1 value: 1 tag string, 2 simple_value float

torch.utils.tensorboard writes the same, but imports TensorFlow where it is installed.
Source: tensorflow/core/util/event.proto, core/framework/summary.proto
"""

from __future__ import annotations

import os
import struct
import time
from typing import Mapping

from semisync.encoding.crc32c import masked_value
from semisync.encoding.wire import encode_varint


class Board:
    """Appends to a new file of `folder`; TensorBoard reads all of a folder's, in the order of their
    names.

    Args:
        step: what files before it have from there on is void.
    """

    def __init__(self, folder: str, step: int) -> None:
        os.makedirs(folder, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now * 1e6):017d}.{os.getpid()}"
        self._file = open(os.path.join(folder, name), "xb")  # noqa: SIM115
        self._write(0, b"\x1a" + _sized(b"brain.Event:2"))
        if step:  # a session log of a start, which TensorBoard takes as said above
            self._write(step + 1, b"\x3a" + _sized(b"\x08\x01"))
        self._file.flush()

    def add(self, step: int, scalars: Mapping[str, float]) -> None:
        """One point of each curve."""
        values = b"".join(
            b"\x0a" + _sized(b"\x0a" + _sized(tag.encode()) + b"\x15" + struct.pack("<f", value))
            for tag, value in scalars.items()
        )
        self._write(step, b"\x2a" + _sized(values))
        self._file.flush()

    def close(self) -> None:
        """No more points."""
        self._file.close()

    def _write(self, step: int, content: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + encode_varint(step) + content
        length = struct.pack("<Q", len(event))
        for piece in (length, event):
            self._file.write(piece + struct.pack("<I", masked_value(piece)))


def _sized(data: bytes) -> bytes:
    return encode_varint(len(data)) + data
