"""The training task: a module that gives a loss, its optimizer, and the batches.

Anything that has these few methods trains under the same loop: a converted graph with its own
optimizer, or a module of one's own with one of torch.optim.
"""

from __future__ import annotations

from typing import (
    Any,
    Dict,
    Iterator,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
)

import torch

from migrate.data import Share

Day = Union[int, str]


class Batch(NamedTuple):
    """One process's share of a global batch.

    Attributes:
        inputs: of the module.
        labels: 0 or 1, [rows] or [rows, 1]; None: there is nothing to measure.
        days: of each row, for metrics by day; None: there are none.
        keys: of each row, to write its score beside; None: there are none.
        parts: more of the same step, whose losses are added to its own.
        size: the unit of speed, where there are no labels.
        last: whether an epoch ends with it.
        share: of the global batch; None: as much as every other process has.

    Examples:
        >>> from migrate.training import Batch
        >>> batch = Batch({"item": torch.tensor([7, 8])}, labels=torch.tensor([1.0, 0.0]))
    """

    inputs: Any
    labels: Optional[torch.Tensor] = None
    days: Optional[Sequence[Day]] = None
    keys: Any = None
    parts: Sequence[Batch] = ()
    size: int = 0
    last: bool = False
    share: Optional[Share] = None

    def weight(self, processes: int) -> float:
        """The weight of the loss in the mean of the losses of all processes.

        Args:
            processes: how many there are.

        Returns:
            1 for equal shares; 0 where the rows are another process's.
        """
        return 1.0 if self.share is None else self.share.rows * processes / self.share.of


class Epoch(NamedTuple):
    """The result of an epoch's end: figures to report, and whether the model is the best so far."""

    figures: Mapping[str, float]
    best: bool = False


class Data(Protocol):
    """This process's shares of all global batches that are left, over all epochs, in an order of
    its own that does not change.

    The state is the position after the last batch that was given, of JSON's types alone, and the
    same on all processes.
    """

    def __iter__(self) -> Iterator[Batch]: ...

    def state_dict(self) -> Dict[str, Any]: ...

    def load_state_dict(self, state: Dict[str, Any]) -> None: ...


class Task(NamedTuple):
    """A module to train, and its optimizer.

    Args:
        module: from a batch's inputs to (loss, scores), or to the loss alone; scores are logits
            [rows] or [rows, 1].
        optimizer: of torch.optim, a `GraphOptimizer` or a `ShardedOptimizer`; those of its tables
            by raw ids (migrate.id_tables) step beside it.

    Examples:
        >>> from migrate.training import Task
        >>> training = migrate.build_training("model.ckpt-40000")
        >>> task = Task(training.module, training.optimizer)
    """

    module: torch.nn.Module
    optimizer: Any


def loss_and_scores(
    module: torch.nn.Module, batch: Batch
) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
    """The output of a task's module for a batch; the loss is one number, the sum of several."""
    found = module(batch.inputs)
    loss, scores = found if isinstance(found, tuple) else (found, None)
    return loss.sum(), scores
