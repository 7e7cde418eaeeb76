"""The model.py of a directory, loaded as a Python module."""

from __future__ import annotations

import os
from types import ModuleType

from semisync.common.errors import BadInput

SOURCE = "model.py"


def read_source(directory: str) -> ModuleType:
    """The model.py that `semisync convert --model` wrote into `directory`: INPUTS and the other
    tables, and `load`.

    Each call runs it anew, outside sys.modules, so that several models can be loaded.

    Raises:
        BadInput: the file is missing, or lacks one of these. Its own errors are raised as they are.
    """
    path = os.path.join(directory, SOURCE)
    if not os.path.isfile(path):
        raise BadInput(
            f"{directory} has no {SOURCE}; `semisync convert --model` writes one, and `semisync "
            "score --torch-model` takes your own code"
        )
    with open(path, "rb") as file:
        module = run_source(file.read(), path)
    for name in ("INPUTS", "OUTPUTS", "TRAINING", "load"):
        if not hasattr(module, name):
            raise BadInput(f"{path} has no {name}; convert the model again with this version")
    return module


def run_source(text: bytes, path: str) -> ModuleType:
    """The module of a text; not by an import, which would use stale bytecode for a file changed in
    the same second."""
    module = ModuleType("model")
    module.__file__ = path
    exec(compile(text, path, "exec"), module.__dict__)
    return module
