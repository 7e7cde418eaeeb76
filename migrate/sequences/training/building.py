"""Settings and a catalog to a model with its optimizers."""

from __future__ import annotations

from typing import Any, Union

import numpy
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from migrate.sequences.histories import Histories
from migrate.sequences.hstu import Hstu
from migrate.sequences.model import RankingModel, RetrievalModel
from migrate.sequences.packing import Source
from migrate.sequences.ranking import Ranking
from migrate.sequences.retrieval import Retrieval
from migrate.sequences.sasrec import SasRec
from migrate.sequences.tower import Tower
from migrate.sequences.training.dense_and_tables import distribute_own
from migrate.sequences.training.feed import Share
from migrate.sequences.training.settings import Model as Shape
from migrate.sequences.training.settings import Settings
from migrate.sequences.training.tables import ById, Collected
from migrate.torchrec.optimizers import Adam
from migrate.training.task import Task
from semisync.common.errors import UsageError

Model = Union[RankingModel, RetrievalModel]


class Step(nn.Module):
    """A model's loss of a share, for the loop."""

    def __init__(self, model: Model, precision: str) -> None:
        super().__init__()
        self.model, self._dtype = model, getattr(torch, precision)

    def forward(self, share: Share) -> Tensor:
        """The loss times the share's weight. All shares of a step draw the same negatives."""
        low, device = self._dtype != torch.float32, self.model.tower.device
        packed = share.packed.to(device)
        with torch.autocast(device.type, self._dtype, enabled=low):
            if isinstance(self.model, RankingModel):
                return self.model.loss(packed) * share.weight
            alike = torch.Generator().manual_seed(share.seed)
            return self.model.loss(packed, alike) * share.weight


def model_of(settings: Settings, catalog: numpy.ndarray) -> Model:
    """A new model, the same in all processes, given the ascending raw ids of items."""
    torch.manual_seed(settings.training.seed)
    dim, seed = settings.model.dim, settings.training.seed
    table: nn.Module = (
        ById(catalog, dim, seed, settings.model.users)
        if settings.model.tables == "ids"
        else Collected(catalog, dim, seed)
    )
    if settings.model.task == "ranking":
        task = Ranking(dim, settings.data.labels)
        return RankingModel(table, _tower(settings.model, 2 * settings.model.length), task)
    retrieval = Retrieval(len(catalog), **vars(settings.loss))
    length = settings.model.length + settings.model.users
    return RetrievalModel(table, _tower(settings.model, length), retrieval)


def source_of(model: Model, settings: Settings, histories: Histories) -> Source:
    """Histories, whose items are rows, as the model takes them; it looks up these users."""
    if not settings.model.users:
        return Source(histories, settings.model.length)
    table: Any = model.table
    table.users = torch.from_numpy(histories.users)
    return Source(histories, settings.model.length, len(table.catalog))


def task_of(model: Model, settings: Settings, device: torch.device) -> Task:
    """The model over all processes.

    Adam trains dense weights; and of tables by raw ids the rows of each batch, of TorchRec's tables
    Adagrad.

    Args:
        device: of this process.
    """
    training = settings.training
    if training.precision == "bfloat16" and not _has_bfloat16(device):
        raise UsageError("this processor has no bfloat16; set precision: float32")
    table_rate = training.table_rate or training.rate
    module: nn.Module = Step(model, training.precision)
    if settings.model.tables == "torchrec":
        return distribute_own(module, training.rate, table_rate, device)
    place(model, device)
    table: Any = model.table
    table.tables.optimizer(Adam, lr=table_rate)
    optimizer = torch.optim.Adam(module.parameters(), training.rate)
    if torch.distributed.is_initialized():
        module = DistributedDataParallel(module, broadcast_buffers=False)
    return Task(module, optimizer)


def place(model: Model, device: torch.device) -> None:
    """Moves the parts that compute. Tables by raw id stay in the memory of the CPU."""
    model.tower.to(device)
    model.task.to(device)
    if isinstance(model.table, Collected):
        model.table.to(device)


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _tower(model: Shape, length: int) -> Tower:
    shape = (model.dim, model.heads, model.layers, length)
    if model.tower == "sasrec":
        return SasRec(*shape, dropout=model.dropout)
    return Hstu(*shape, buckets=model.buckets, dropout=model.dropout)
