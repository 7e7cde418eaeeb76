"""Training on: a converted graph, or a module of one's own, with exact resumption.

    converted = open_converted(migrate.open_checkpoint("model.ckpt-40000"))
    reading = reading_of(converted.inputs, named={}, feeds={}, label="click", day=None)
    data = open_columns(["log"], reading, batch_size=1024)
    train(converted.task, data, "trained", resume=True)

1. A `Task` is a module that gives (loss, scores), and its optimizer. `open_converted` makes it of a
   checkpoint; `distribute` shares it out among the processes of `joined`.
2. The data give this process's `Batch`es and their own position; `open_columns` reads files.
3. `train` takes the steps, measures, reports, and writes checkpoints while it goes on.

`semisync train` is these together. Importing this package imports no torch.
"""

import importlib
from typing import Any, List

_HOME = {
    "Batch": "migrate.training.task",
    "Checkpoints": "migrate.training.checkpoints",
    "Settings": "migrate.training.trainer",
    "Task": "migrate.training.task",
    "distribute": "migrate.training.sharding",
    "joined": "migrate.training.processes",
    "open_columns": "migrate.training.reading",
    "open_converted": "migrate.training.converted",
    "reading_of": "migrate.training.reading",
    "shrink": "migrate.training.frozen",
    "train": "migrate.training.trainer",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'migrate.training' has no attribute {name!r}")


def __dir__() -> List[str]:
    return __all__
