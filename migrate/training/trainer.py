"""The training loop.

1. A batch is scored, counted in the metrics, and trained on.
2. Every `report_every` steps the figures so far are reported, every `checkpoint_every` a checkpoint
   is begun; the last step ends with both.
3. A checkpoint holds the model, the optimizer, the position in the data, torch's random state, the
   metrics. A training that goes on from it takes the steps that it would have taken.
4. Where an epoch ends, it may be measured; a checkpoint follows, of which OUT/best has the best.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional

import torch
import torch.distributed as dist

from migrate.targets.work_directory import cannot_write, is_passing
from migrate.training import state
from migrate.training.at_work import at_work
from migrate.training.checkpoints import BEST, CHECKPOINTS, Checkpoints, refuse_existing
from migrate.training.distributed.norms import sharing
from migrate.training.distributed.processes import rank, ranks
from migrate.training.metrics import Figures, Metrics
from migrate.training.reporting import Reporter, measured
from migrate.training.scores import Scores
from migrate.training.task import Batch, Data, Epoch, Task, loss_and_scores
from semisync.common.errors import BadInput, SemisyncError


class Settings(NamedTuple):
    """A training's length, and the intervals of its reports and checkpoints.

    Args:
        steps: after which it ends; None: with the data.
        checkpoint_every, report_every: steps.
        keep: checkpoints.
        warm_up: steps over which the learning rates rise to their values.
        unit: of the speed.

    Examples:
        >>> from migrate.training import Settings
        >>> Settings(steps=10).checkpoint_every
        1000
    """

    steps: Optional[int] = None
    checkpoint_every: int = 1000
    report_every: int = 100
    keep: int = 3
    warm_up: int = 0
    unit: str = "rows"


class Result(NamedTuple):
    """How a training ended.

    Attributes:
        step: the last one.
        metrics: of all processes and steps, those before a restart too.
        evaluation: None without data for it.
    """

    step: int
    metrics: Metrics
    evaluation: Optional[Figures]


def train(
    task: Task,
    data: Data,
    out: str,
    settings: Optional[Settings] = None,
    resume: bool = False,
    evaluation: Optional[Callable[[], Iterable[Batch]]] = None,
    scores: Optional[Scores] = None,
    after_epoch: Optional[Callable[[], Epoch]] = None,
) -> Result:
    """Trains `task` on the rest of `data`; every process calls it.

    Args:
        task: the one to train.
        data: iterates over `Batch`es, and has `state_dict` and `load_state_dict`, as `open_columns`
            gives it.
        out: the folder for checkpoints, log and TensorBoard's scalars.
        settings: by default `Settings()`.
        resume: go on from the newest whole checkpoint of `out` that is not damaged, if there is
            one; without it `out` must have none.
        evaluation: opens the data that the trained model is measured on.
        scores: writes every row's score before its step; the batches then have labels and keys.
        after_epoch: measures where an epoch ends; every process calls it, with the module as it
            serves.

    Returns:
        A `Result`: the last `step`, `metrics` of the rows that were trained on, `evaluation`.

    Raises:
        UsageError: `out` has checkpoints and `resume` is not set, or another process trains there.
        BadInput: the loss is not finite, or all checkpoints are damaged.
        SemisyncError: a checkpoint cannot be written.

    Examples:
        >>> from migrate.training import Settings, open_columns, open_converted, reading_of, train
        >>> converted = open_converted(migrate.open_checkpoint("model.ckpt-40000"))
        >>> reading = reading_of(converted.inputs, {}, {}, label="clicked", day=None)
        >>> data = open_columns(["clicks.parquet"], reading, batch_size=4)
        >>> result = train(converted.task, data, "trained_on", Settings(report_every=2))
        step 2: ...
        >>> result.step
        2
    """
    with at_work(out), _room(out), warnings.catch_warnings():  # one process is intended
        run = _Run(task, data, out, settings or Settings(), scores, after_epoch)
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        run.begin(resume)
        try:
            run.to_the_end()
            figures = None if evaluation is None else run.evaluate(evaluation())
            metrics = run.metrics.gathered()
            if scores is not None and rank() == 0:
                scores.write()
            return Result(run.step, metrics, figures)
        finally:
            if run.reporter is not None:
                run.reporter.close()


@contextlib.contextmanager
def _room(out: str) -> Iterator[None]:
    """A full disk as a SemisyncError with the remedy."""
    try:
        yield
    except OSError as error:
        if not is_passing(error):
            raise
        raise SemisyncError(
            f"{cannot_write(out, error)}; make room there and go on with --resume"
        ) from error


class _Run:
    def __init__(
        self,
        task: Task,
        data: Data,
        out: str,
        settings: Settings,
        scores: Optional[Scores],
        after_epoch: Optional[Callable[[], Epoch]],
    ) -> None:
        self._task, self._data, self._out, self._settings = task, data, out, settings
        self._scores, self._after_epoch = scores, after_epoch
        self._optimizers = state.optimizers_of(task)
        # Of its own: a thread writes checkpoints while the training's collective calls go on.
        group = dist.new_group(backend="gloo") if dist.is_initialized() else None
        folder = os.path.join(out, CHECKPOINTS)
        self._checkpoints = Checkpoints(folder, settings.keep, group)
        self.step, self._saved, self._best = 0, -1, 0
        self.metrics = Metrics()
        self._loss, self._losses, self._rows = 0.0, 0, 0
        self.reporter: Optional[Reporter] = None

    def begin(self, resume: bool) -> None:
        """Restores the newest sound checkpoint, if there is one, and opens the reports."""
        refuse_existing(self._out, resume)
        newest = self._checkpoints.newest()
        if newest is not None:
            self.step = self._saved = newest
            self.metrics, found = state.load(self._checkpoints, self.step, self._task)
            self._data.load_state_dict(found["data"])
            # The process may have ended between the checkpoint and the copy of the best one.
            self._best = found.get("best", 0)
            self._keep_best()
            if rank() == 0:
                # They are the sums of all processes, and are added up again.
                self._loss, self._losses = found["loss"]
        if rank() == 0:
            if self._scores is not None:
                figures = self.metrics.whole()
                self._scores.go_on(self.step, 0 if figures is None else figures.rows)
            os.makedirs(self._out, exist_ok=True)
            self.reporter = Reporter(self._out, self.step, self._settings.unit)

    def to_the_end(self) -> None:
        """Takes all steps that are left, and writes the last checkpoint."""
        settings = self._settings
        self._task.module.train()
        if settings.steps is None or self.step < settings.steps:
            for batch in self._data:
                self._take(batch)
                if self.step % settings.report_every == 0:
                    self._report()
                if batch.last and self._after_epoch is not None:
                    self._end_epoch(self._after_epoch)
                # `_end_epoch` has saved.
                elif self.step % settings.checkpoint_every == 0:
                    self._save()
                if self.step == settings.steps:
                    break
        if self._sums()[1]:
            self._report()
        if self._saved != self.step:
            self._save()
        self._checkpoints.wait()

    def evaluate(self, batches: Iterable[Batch]) -> Optional[Figures]:
        """The model's figures on other data."""
        module, metrics = self._task.module.eval(), Metrics()
        with torch.no_grad():
            for batch in batches:
                _, scores = loss_and_scores(module, batch)
                if batch.labels is not None and scores is not None:
                    metrics.add(batch.labels, scores)
        return metrics.gathered().whole()

    def _take(self, batch: Batch) -> None:
        self._warm_up()
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        parts = (batch, *batch.parts)
        alone = getattr(self._task.module, "no_sync", contextlib.nullcontext)
        with alone():  # the processes exchange the gradients of all parts once
            value = sum(map(self._add, parts[:-1]))
        value += self._add(parts[-1])
        # Before the optimizers step by gradients that are not finite.
        if not math.isfinite(value):
            raise BadInput(
                f"the loss of step {self.step + 1} is {value}: the training has diverged"
            )
        for optimizer in self._optimizers:
            optimizer.step()
        self.step += 1
        self._loss, self._losses = self._loss + value, self._losses + 1

    def _add(self, batch: Batch) -> float:
        """The loss of a part of the step; its gradients are added up."""
        with sharing(batch.share):
            loss, scores = loss_and_scores(self._task.module, batch)
        self._rows += batch.size
        if batch.labels is not None and scores is not None:
            self.metrics.add(batch.labels, scores, batch.days)
            self._rows += len(batch.labels)
            if self._scores is not None:
                self._scores.add(batch, scores)
        weight = batch.weight(ranks())
        (loss if weight == 1 else loss * weight).backward()
        return weight * float(loss.detach())

    def _warm_up(self) -> None:
        """Sets the learning rates of the first steps."""
        if self.step <= self._settings.warm_up > 0:
            share = min(1.0, (self.step + 1) / self._settings.warm_up)
            for group in (one for by in self._optimizers for one in by.param_groups):
                group["lr"] = group.setdefault("initial_lr", group["lr"]) * share

    def _end_epoch(self, after_epoch: Callable[[], Epoch]) -> None:
        """Measures the model, and writes a checkpoint that includes the outcome."""
        if self._sums()[1]:
            self._report()
        self._task.module.eval()
        found = after_epoch()
        self._task.module.train()
        if self.reporter is not None:
            self.reporter.report(self.step, found.figures)
        self._best = self.step if found.best else self._best
        self._save()
        self._keep_best()

    def _save(self) -> None:
        loss = self._sums()
        if self._scores is not None:
            self._scores.flush(self.step)
        plain = {"step": self.step, "data": self._data.state_dict(), "loss": loss}
        plain["best"] = self._best
        state.save(self._checkpoints, self.step, self._task, self.metrics, plain)
        self._saved = self.step

    def _keep_best(self) -> None:
        """Copies the best checkpoint to its own folder, once it is whole."""
        if self._best == self._saved:
            self._checkpoints.wait()
            if rank() == 0:
                self._checkpoints.keep(self._best, os.path.join(self._out, BEST))

    def _report(self) -> None:
        loss, count = self._sums()
        figures = self.metrics.gathered().whole()
        self._loss, self._losses = 0.0, 0
        if self.reporter is not None:
            more = {} if figures is None else measured(figures)
            self.reporter.report(self.step, {"loss": loss / count, **more}, self._rows * ranks())

    def _sums(self) -> List[float]:
        """[sum of the losses since the last report, their number] of all processes."""
        if ranks() == 1:
            return [self._loss, self._losses]
        sums = torch.tensor([self._loss, self._losses], dtype=torch.float64)
        dist.all_reduce(sums)
        return [float(sums[0]), int(sums[1])]
