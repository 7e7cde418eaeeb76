"""Files that another process may read at any moment: it finds the old one or the new one, whole."""

import contextlib
import json
import os
import pathlib


@contextlib.contextmanager
def replacing(path):
    """Yields a path beside `path` to write to, and moves it there; a failure leaves nothing."""
    path = pathlib.Path(path)
    beside = path.with_name(".{}.{}".format(path.name, os.getpid()))
    try:
        yield beside
        os.replace(str(beside), str(path))
    finally:
        if beside.exists():
            beside.unlink()


def write_bytes(path, data):
    """Writes `data` beside its place and moves it there; a failure leaves nothing."""
    with replacing(path) as beside:
        beside.write_bytes(data)


def write_text(path, text):
    """`write_bytes` of `text` in UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path, value):
    """`write_text` of `value` as JSON."""
    write_text(path, json.dumps(value))
