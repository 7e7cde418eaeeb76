"""A training from files to a folder, and its later use.

OUT/sequence.json    the settings
OUT/items.parquet    of items that are text: id and text
OUT/checkpoints      and OUT/log.jsonl, OUT/tensorboard: see migrate.training
OUT/best             the checkpoint of the best epoch
"""

from __future__ import annotations

import os
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from migrate.data.listing import Paths
from migrate.sequences.histories import Histories, read_histories
from migrate.sequences.model import RankingModel
from migrate.sequences.names import Names
from migrate.sequences.packing import Asking, in_catalog
from migrate.sequences.splits import at_one_time, split
from migrate.sequences.training.building import Model, Step, model_of, place, source_of, task_of
from migrate.sequences.training.feed import Feed
from migrate.sequences.training.measuring import Logits, Measured, logits, measure
from migrate.sequences.training.settings import Settings, check_asked, settings_of
from migrate.sequences.training.starting import warm
from migrate.training import state
from migrate.training.at_work import at_work
from migrate.training.checkpoints import (
    BEST,
    CHECKPOINTS,
    Checkpoints,
    refuse_existing,
    whole_steps,
)
from migrate.training.distributed import processes
from migrate.training.task import Epoch
from migrate.training.trainer import Result
from migrate.training.trainer import Settings as Loop
from migrate.training.trainer import train as loop
from semisync.common import json_text
from semisync.common.errors import BadInput, UsageError
from semisync.common.files import replacing, write_json
from semisync.common.terminal import say

FILE, _ITEMS = "sequence.json", "items.parquet"
_SCHEMA = "semisync.sequence/2"
_CATALOG = "model.model.table.catalog"  # in a checkpoint
_SAME, _COMPARED = ("data", "split", "model", "loss"), ("metric", "asked")  # see _refuse_others
_CPU = torch.device("cpu")


def train(
    settings: Settings,
    paths: Paths,
    out: str,
    resume: bool = False,
    checkpoint_every: int = 1000,
    report_every: int = 100,
    device: torch.device = _CPU,
) -> Result:
    """Trains on the files' histories; every process calls it.

    Errors as of `migrate.training`.

    Args:
        device: of this process, as `migrate.training.joined` gives it.
    """
    with at_work(out):
        return _train(settings, paths, out, resume, checkpoint_every, report_every, device)


def _train(
    settings: Settings,
    paths: Paths,
    out: str,
    resume: bool,
    checkpoint_every: int,
    report_every: int,
    device: torch.device,
) -> Result:
    refuse_existing(out, resume)
    gone_on = bool(whole_steps(os.path.join(out, CHECKPOINTS)))
    if gone_on:
        _refuse_others(settings, out)
    histories = read_histories(paths, settings.data)
    catalog = numpy.unique(histories.items)
    histories, _ = in_catalog(histories, catalog)
    parts = split(histories, settings.split)
    training, model = settings.training, model_of(settings, catalog)
    source = source_of(model, settings, histories)
    start = settings.start
    if start is not None and not gone_on:
        for kind, name in (("item", start.item), ("user", start.user)):
            if name is not None:
                ids = {"item": catalog, "user": histories.users}[kind]
                share = warm(model.table, kind, ids, settings.model.dim, start.converted, name)
                if processes.rank() == 0:
                    say(f"begun with the vectors of {share:.2%} of {len(ids):,} {kind}s")
    task = task_of(model, settings, device)
    # The model is drawn alike in all processes; from here on each draws its own dropout.
    torch.manual_seed(training.seed + processes.rank())
    own = processes.rank(), processes.ranks()
    feed = Feed(source, parts.train, settings.model.task == "retrieval", training, own)
    asking = Asking.of(training.asked)
    validation = Measured(source, parts.asked["validation"], training.tokens, asking)

    def after_epoch() -> Epoch:
        return feed.end_epoch(measure(model, validation))

    if processes.rank() == 0:
        tell_moments(at_one_time(histories))
        if settings.model.timed:
            say(f"the validation is {asking}")
        os.makedirs(out, exist_ok=True)
        if "item" in histories.names:
            histories.names["item"].write(os.path.join(out, _ITEMS))
        write_json(os.path.join(out, FILE), {"schema": _SCHEMA, **settings.to_json()})
    steps = Loop(None, checkpoint_every, report_every, warm_up=training.warm_up, unit="events")
    return loop(task, feed, out, steps, resume, after_epoch=after_epoch)


def tell_moments(share: float) -> None:
    """Warns of the number of events at the same time as another of their user."""
    if share:
        say(f"{share:.2%} of the events do not see others of their user that are at the same time")


def _refuse_others(settings: Settings, out: str) -> None:
    """Refuses to resume a training with another objective, or another measure of the best epoch."""
    begun = read_written(out)
    told = [(part, vars(getattr(begun, part)), vars(getattr(settings, part))) for part in _SAME]
    told += [
        (name, getattr(begun.training, name), getattr(settings.training, name))
        for name in _COMPARED
    ]
    for name, first, now in told:
        if first != now:
            raise UsageError(
                f"{out} was begun with {name}: {first}; go on with that, or train from scratch in "
                "another folder"
            )


class Trained(NamedTuple):
    """A trained model, its items' ids, the settings, the step, and the items as read (pyarrow)."""

    model: Model
    catalog: numpy.ndarray
    settings: Settings
    step: int
    items: Any


def read_written(out: str) -> Settings:
    """The settings that a training was begun with; raises BadInput if there is none."""
    path = os.path.join(out, FILE)
    try:
        data = json_text.read(path)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read ({error}); give a folder of `semisync sequence train`"
        ) from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    if schema != _SCHEMA:
        raise BadInput(
            f"{path} is of the schema {schema!r}, expected {_SCHEMA!r}: a model of another version "
            "would have other scores here; train anew"
        )
    return settings_of(data, path)


def open_trained(out: str, device: torch.device = _CPU) -> Trained:
    """The best epoch's model, or where none was measured the newest; every process calls it.

    Args:
        device: where it computes.

    Raises:
        BadInput: the folder holds no training, or a damaged one.
    """
    settings = read_written(out)
    for folder in (os.path.join(out, BEST), os.path.join(out, CHECKPOINTS)):
        steps = whole_steps(folder)
        if steps:
            trained = _opened(out, Checkpoints(folder), steps[-1], settings)
            place(trained.model, device)
            return trained
    raise BadInput(f"{out} has no whole checkpoint; train until there is one")


def _opened(out: str, checkpoints: Checkpoints, step: int, settings: Settings) -> Trained:
    checkpoints.check(step)
    sizes = checkpoints.sizes(step)
    if _CATALOG not in sizes:
        raise BadInput(f"{checkpoints.path(step)} is not a checkpoint of a model of sequences")
    # First: the sizes of the model are those of its catalog.
    catalog = torch.empty(sizes[_CATALOG], dtype=torch.int64)
    checkpoints.load(step, {_CATALOG: catalog})
    model = model_of(settings, catalog.numpy())
    # As it was trained: the checkpoint has the names of a `Step`.
    state.load_model(checkpoints, step, Step(model, "float32"))
    ids = catalog.numpy()
    text = "item" in settings.data.types
    items = Names.read(os.path.join(out, _ITEMS)).texts(ids) if text else pa.array(ids)
    return Trained(model.eval(), ids, settings, step, items)


def evaluate(
    trained: Trained,
    paths: Paths,
    part: str,
    scores: Optional[str] = None,
    asked: Sequence[str] = (),
) -> Dict[str, Any]:
    """The figures of a part, "validation" or "test": of retrieval among all items, and without
    those that a user had before.

    With the share of the events that are of items that the model does not know, and of those at the
    time of another of their user.

    Args:
        scores: of a ranking, a file for the labels and logits of each event.
        asked: when next items are asked for, as `Asking.of` takes it, each with figures of its own;
            by default "next" and "last" where that has an influence.
    """
    timed = trained.settings.model.timed
    every = [Asking.of(text) for text in asked or (("next", "last") if timed else ("next",))]
    check_asked(every, trained.settings.model)
    histories, unknown = known(trained, paths)
    ends = split(histories, trained.settings.split).asked[part]
    source = source_of(trained.model, trained.settings, histories)
    of = Measured(source, ends, trained.settings.training.tokens)
    found: Dict[str, Any] = {"part": part, "users": len(ends.users), "unknown": unknown}
    found["at one time"] = at_one_time(histories)
    if isinstance(trained.model, RankingModel):
        if scores is not None:
            each = logits(trained.model, of)
            if processes.rank() == 0:
                _write_scores(trained, histories, each, scores)
        return {**found, "labels": measure(trained.model, of)}
    if scores is not None:
        raise UsageError("--scores are of labels; a retrieval has none: see `sequence export`")
    for asking in every:
        of, when = of._replace(asking=asking), f", {asking}" if timed else ""
        for name, without in (("all items", False), ("without seen items", True)):
            found[name + when] = measure(trained.model, of, without)
    return found


def _write_scores(trained: Trained, histories: Histories, found: Logits, path: str) -> None:
    """Writes a row per event for `semisync parity`: user, item, time, LABEL and LABEL_logit."""
    events = found.events
    users = numpy.searchsorted(histories.offsets, events, "right") - 1
    columns = {
        "user": histories.told("user", histories.users[users]),
        "item": trained.items.take(pa.array(histories.items[events])),
    }
    if histories.times is not None:
        columns["time"] = histories.times[events]
    for name, logit in found.logits.items():
        columns[name] = histories.labels[name][events].astype(numpy.int8)
        columns[f"{name}_logit"] = logit
    with replacing(path) as beside:
        pq.write_table(pa.table(columns), beside)


def known(trained: Trained, paths: Paths) -> Tuple[Histories, float]:
    """The files' histories by rows of the model's catalog; see `in_catalog`."""
    return in_catalog(read_histories(paths, trained.settings.data), trained.catalog)
