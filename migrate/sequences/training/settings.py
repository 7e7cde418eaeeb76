"""The settings of a training, as YAML: every part and every field may be left out.

data: {form: lines}                   # or user, item, time, labels: names of columns
split: {validation: 180, test: 190}   # times; without them the last two events of each user
model: {tower: hstu, dim: 64, heads: 2, layers: 2, length: 50, dropout: 0.2}
loss: {negatives: uniform, count: 1024, temperature: 0.05}
training: {epochs: 50, tokens: 16384, rate: 0.001, warm_up: 100, patience: 5}
start: {converted: DIR, item: deep/item}
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Sequence

from migrate.manifest.typed import build
from migrate.planning import yaml_text
from migrate.sequences.histories import FORMS, Columns
from migrate.sequences.packing import Asking
from migrate.sequences.retrieval import NEGATIVES
from migrate.sequences.splits import SplitAt
from semisync.common.errors import BadInput, UsageError
from semisync.common.files import read_text

TASKS, TOWERS = ("retrieval", "ranking"), ("hstu", "sasrec")
TABLES = ("ids", "torchrec")
METRICS = {"retrieval": ("NDCG@10", "HR@5", "NDCG@5", "HR@10", "MRR"), "ranking": ("AUC",)}
PRECISIONS = ("float32", "bfloat16")


@dataclass
class Model:
    """The settings of a model.

    Attributes:
        task: which item comes next, or which labels an item gets.
        tower, tables: one of TOWERS and of TABLES.
        dim: of vectors.
        length: the last events of a sequence that it reads.
        buckets: of ages, for data with times; 0: times have no influence.
        users: a user has its own vector, the first of its sequence.
    """

    task: str = "retrieval"
    tower: str = "hstu"
    dim: int = 64
    heads: int = 2
    layers: int = 2
    length: int = 50
    buckets: int = 0
    dropout: float = 0.2
    tables: str = "ids"
    users: bool = False

    @property
    def timed(self) -> bool:
        """Whether its answer depends on the time of asking; labels are asked at their own time."""
        return self.task == "retrieval" and self.tower == "hstu" and self.buckets > 0


@dataclass
class Loss:
    """The settings of a `migrate.sequences.retrieval.Retrieval`."""

    negatives: str = "uniform"
    count: int = 1024
    temperature: float = 0.05
    normalise: bool = True
    log_q: bool = True


@dataclass
class Training:
    """How a training runs.

    Attributes:
        tokens: about how many events a global batch has.
        accumulate: in how many parts it is processed, one after the other.
        rate, table_rate: learning rates of Adam and, if it is another, of the tables.
        warm_up: steps.
        patience: epochs without a better `metric` before it ends.
        metric, precision: of METRICS, by default the first, and of PRECISIONS.
        asked: when the validation asks, as `migrate.sequences.packing.Asking.of` takes it.
    """

    epochs: int = 50
    tokens: int = 16384
    accumulate: int = 1
    rate: float = 0.001
    table_rate: Optional[float] = None
    warm_up: int = 0
    patience: int = 5
    metric: Optional[str] = None
    precision: str = "float32"
    asked: str = "next"
    seed: int = 0


@dataclass
class Start:
    """A directory of `semisync convert`, and the names of its item and user tables."""

    converted: str
    item: Optional[str] = None
    user: Optional[str] = None


@dataclass
class Settings:
    """All settings, by part."""

    data: Columns = field(default_factory=Columns)
    split: SplitAt = field(default_factory=SplitAt)
    model: Model = field(default_factory=Model)
    loss: Loss = field(default_factory=Loss)
    training: Training = field(default_factory=Training)
    start: Optional[Start] = None

    def to_json(self) -> Dict[str, Any]:
        """All fields, which `settings_of` reads."""
        return dataclasses.asdict(self)


def read_settings(path: str) -> Settings:
    """The settings in a file; BadInput in one sentence where something in it is wrong."""
    return settings_of(yaml_text.load(read_text(path), path), path)


def settings_of(data: Any, where: str) -> Settings:
    """`data`, as YAML or JSON gives it, checked; BadInput begins with `where`."""
    found = build(Settings, {} if data is None else data, where)
    metrics = METRICS.get(found.model.task, ())
    if found.training.metric is None and metrics:
        found.training.metric = metrics[0]
    for part, name, known in (
        (found.data, "form", FORMS),
        (found.model, "task", TASKS),
        (found.model, "tower", TOWERS),
        (found.model, "tables", TABLES),
        (found.loss, "negatives", NEGATIVES),
        (found.training, "metric", metrics),
        (found.training, "precision", PRECISIONS),
    ):
        value = getattr(part, name)
        if value not in known:
            raise BadInput(f"{where}: {name} is {value!r}, expected one of {', '.join(known)}")
    least = {"dropout": 0.0, "seed": 0, "warm_up": 0, "buckets": 0, "patience": 0, "length": 2}
    for one in (found.model, found.loss, found.training):
        for name, value in vars(one).items():
            # A bool is an int to Python.
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                _check(f"{where}: {name}", value, least.get(name, 1))
    if found.model.dropout >= 1:
        raise BadInput(f"{where}: dropout is {found.model.dropout}, expected less than 1")
    if found.model.dim % found.model.heads:
        raise BadInput(
            f"{where}: {found.model.heads} heads cannot share a dim of {found.model.dim}"
        )
    if found.training.tokens < found.model.length:
        raise BadInput(
            f"{where}: tokens is {found.training.tokens}, expected at least the model's length, "
            f"{found.model.length}"
        )
    if found.model.tables == "torchrec" and (found.training.accumulate > 1 or found.model.dim % 4):
        raise BadInput(
            f"{where}: tables of torchrec step within the backward pass of a whole batch, and have "
            "dims that are multiples of 4; set accumulate: 1 and such a dim, or tables: ids"
        )
    if found.model.users and (found.model.task, found.model.tables) != ("retrieval", "ids"):
        raise BadInput(f"{where}: users have vectors with task: retrieval and tables: ids alone")
    if found.start is not None and found.start.user is not None and not found.model.users:
        raise BadInput(f"{where}: start: user needs users with vectors; set model: {{users: true}}")
    try:
        check_asked([Asking.of(found.training.asked)], found.model)
    except UsageError as error:
        raise BadInput(f"{where}: asked is {found.training.asked!r}: {error}") from error
    by_time = {"buckets": found.model.buckets, "split": any(vars(found.split).values())}
    for name in (name for name, given in by_time.items() if given and found.data.time is None):
        raise BadInput(f"{where}: {name} needs times; name their column by data: {{time: ...}}")
    return found


def check_asked(given: Sequence[Asking], model: Model) -> None:
    """Raises UsageError for a time that has no influence."""
    if not model.timed and not all(asking.of_log for asking in given):
        raise UsageError(
            "when it is asked has no influence on this model; it has with task: retrieval, tower: "
            "hstu and buckets"
        )


def _check(name: str, value: float, least: float) -> None:
    """A whole number from `least` on; another one above it."""
    if isinstance(value, float) and (not math.isfinite(value) or value <= 0 < least or value < 0):
        raise BadInput(f"{name} is {value}, expected a number above 0")
    if isinstance(value, int) and value < least:
        raise BadInput(f"{name} is {value}, expected at least {least:g}")
