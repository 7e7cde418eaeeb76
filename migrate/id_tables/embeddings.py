"""The module: look-ups in tables by raw ids, and the optimizers that step their rows.

`migrate.id_tables` tells the protocol.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Type, Union

import numpy
import torch
from torch import Tensor

from migrate.id_tables import features as inputs
from migrate.id_tables.exchange import Parts, Processes
from migrate.id_tables.initializers import seed_of
from migrate.id_tables.pooling import summed
from migrate.id_tables.store import Store
from migrate.id_tables.table import IdTable
from migrate.runtime.compiled.table import unique_integers
from migrate.torchrec.optimizers import RowOptimizer
from semisync.common.errors import UsageError


class _Asked(NamedTuple):
    """A look-up of one table, by this process. unique: its ids, each once. places: of every id in
    them. counts: how often each occurs. order: `unique` by owner; sizes: how many each owner has.
    """

    unique: numpy.ndarray
    places: Tensor
    counts: numpy.ndarray
    order: numpy.ndarray
    sizes: List[int]


class _Pending(NamedTuple):
    """A look-up whose gradient the next step needs. leaf: what this process got, [ids, dim]. rows:
    of this process, that it gave to all; given: how many to each. done: [True] after the step."""

    asked: _Asked
    leaf: Tensor
    rows: numpy.ndarray
    given: List[int]
    done: List[bool]


class IdEmbeddings(torch.nn.Module):
    """Tables by raw ids.

        tables = IdEmbeddings([IdTable("user", 16, ["user", "friend"])])
        optimizer = tables.optimizer(Adagrad, lr=0.05)
        tables(features)["user"]                        # pooled: float32 [bags, 16]

    seed: of the initializers, in all processes the same. average: whether a step takes the mean of
    the processes' gradients, as DistributedDataParallel does, for a loss that is a mean over each
    process's equal share; else their sum. group: the processes, all by default.

    A look-up of a module in training mode, while gradients are recorded, gives rows to new ids and
    counts; any other is frozen, and changes nothing.
    """

    def __init__(
        self,
        tables: Sequence[IdTable],
        seed: Union[int, torch.Generator] = 0,
        average: bool = True,
        group: Any = None,
    ) -> None:
        super().__init__()
        for what, names in (
            ("tables", [table.name for table in tables]),
            ("tables of the feature", [name for table in tables for name in table.features]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise UsageError(f"there are two {what} {twice[0]!r}")
        self.tables = {table.name: table for table in tables}
        self.processes = Processes(group)
        self.stores = {
            table.name: Store(table.name, table.dim, table.initializer, seed_of(seed, table.name))
            for table in tables
        }
        self.optimizers: List[RowOptimizer] = []  # that `optimizer` made
        self._average = average
        self._pending: Dict[str, List[_Pending]] = {name: [] for name in self.tables}
        self._met = dict.fromkeys(self.tables, 0)  # ids of frozen look-ups, by table
        self._unknown = dict.fromkeys(self.tables, 0)
        self._agreed = False

    def optimizer(
        self, kind: Type[RowOptimizer], tables: Optional[Sequence[str]] = None, **settings: Any
    ) -> RowOptimizer:
        """What steps the rows of all `tables`, or of those named: its `step` is called by all
        processes.

        kind: of migrate.torchrec.optimizers; settings: its arguments
        """
        if not (isinstance(kind, type) and issubclass(kind, RowOptimizer)):
            raise UsageError(f"{kind!r} is no optimizer of migrate.torchrec.optimizers")
        names = list(self.tables) if tables is None else list(tables)
        for name in names:
            if self.store(name).optimizer is not None:
                raise UsageError(f"table {name!r} has an optimizer already")
            if self.stores[name].left_out:
                raise UsageError(
                    f"table {name!r} was filled without its slots {self.stores[name].left_out}; "
                    "make the optimizer first"
                )
        stores = [self.stores[name] for name in names]
        optimizer = kind([store.weight for store in stores], rows="touched", **settings)
        for store in stores:
            store.trained_by(optimizer)
        optimizer.register_step_pre_hook(lambda *_: self._collect(names))
        optimizer.register_step_post_hook(lambda *_: self._end(names))
        zero_grad = optimizer.zero_grad

        def zero_all(set_to_none: bool = True) -> None:
            zero_grad(set_to_none)
            for one in (one for name in names for one in self._pending[name]):
                one.leaf.grad = None

        optimizer.zero_grad = zero_all  # type: ignore[method-assign]
        self.optimizers.append(optimizer)
        return optimizer

    def forward(self, features: Any) -> Dict[str, Tensor]:
        """The vectors of each feature: [bags, dim], or without pooling [*shape of the ids, dim].

        features: a KeyedJaggedTensor; or by name (ids, offsets), or (ids, offsets, weights), with
        offsets [bags + 1]; or the ids alone where the table does not pool. All processes call it.
        """
        self.agree()
        tables = list(self.tables.values())
        given = inputs.given(features, tables)
        training = self.training and torch.is_grad_enabled()
        asked = [
            self._asked(torch.cat([given[name].ids for name in table.features])) for table in tables
        ]
        found = self._look_up(tables, asked, training)
        result: Dict[str, Tensor] = {}
        for table, one, rows in zip(tables, asked, found):
            result.update(inputs.vectors(table, given, rows, one.places))
        return result

    def rows(self) -> Dict[str, int]:
        """How many each table has, of all processes, which all call it."""
        counts = self.processes.total([store.count for store in self.stores.values()])
        return dict(zip(self.tables, counts))

    def unknown(self) -> Dict[str, float]:
        """The share of the ids of frozen look-ups, since the last call, that had no row, by table;
        0 where there were none. All processes call it."""
        counts = self.processes.total([*self._unknown.values(), *self._met.values()])
        self._unknown, self._met = dict.fromkeys(self.tables, 0), dict.fromkeys(self.tables, 0)
        pairs = zip(counts, counts[len(self.tables) :])
        return {name: one / max(all_, 1) for name, (one, all_) in zip(self.tables, pairs)}

    def forget(self) -> None:
        """Drops the look-ups that the next step was to train on."""
        for pending in self._pending.values():
            for one in pending:
                one.done[0] = True
            pending.clear()

    def agree(self) -> None:
        """UsageError where the processes' tables differ; they are compared once."""
        if not self._agreed:
            seeds = [store.seed for store in self.stores.values()]
            self.processes.agree([f"{t!r} seed {s}" for t, s in zip(self.tables.values(), seeds)])
            self._agreed = True

    def store(self, name: str) -> Store:
        """This process's rows of a table; UsageError where there is none of the name."""
        if name not in self.stores:
            raise UsageError(f"there is no table {name!r}, expected one of {sorted(self.stores)}")
        return self.stores[name]

    def _asked(self, ids: Tensor) -> _Asked:
        unique, places, counts = unique_integers(ids.numpy())
        if self.processes.ranks == 1:
            order, sizes = numpy.arange(len(unique)), [len(unique)]
        else:
            owners = self.processes.owners(unique)
            order = numpy.argsort(owners, kind="stable")
            sizes = numpy.bincount(owners, minlength=self.processes.ranks).tolist()
        return _Asked(unique, torch.from_numpy(places), counts, order, sizes)

    def _look_up(self, tables: List[IdTable], asked: List[_Asked], training: bool) -> List[Tensor]:
        """The vectors of `unique` of each table."""
        columns = [(one.unique[one.order], one) for one in asked]
        columns += [(one.counts[one.order], one) for one in asked]
        questions = self.processes.exchange(
            _by_rank([(torch.from_numpy(of), one.sizes) for of, one in columns])
        )
        replies, owned = [], []
        for number, table in enumerate(tables):
            ids = torch.cat([of[number] for of in questions]).numpy()
            counts = torch.cat([of[number + len(tables)] for of in questions]).numpy()
            given = [len(of[number]) for of in questions]
            rows = self._admitted(table, ids, counts) if training else None
            values = self._frozen(table, ids, counts) if rows is None else self._values(table, rows)
            owned.append((rows, given))
            replies.append((values.reshape(-1), [size * table.dim for size in given]))
        wanted = [
            [one.sizes[rank] * table.dim for table, one in zip(tables, asked)]
            for rank in range(self.processes.ranks)
        ]
        answers = self.processes.exchange(_by_rank(replies), wanted)
        found = []
        for number, (table, one, (rows, given)) in enumerate(zip(tables, asked, owned)):
            values = torch.cat([of[number] for of in answers]).reshape(-1, table.dim)
            if self.processes.ranks > 1:
                values = torch.empty_like(values).index_copy_(
                    0, torch.from_numpy(one.order), values
                )
            if rows is not None:
                self._await(
                    table.name, _Pending(one, values.requires_grad_(), rows, given, [False])
                )
            found.append(values)
        return found

    def _await(self, name: str, pending: _Pending) -> None:
        def late(_: Tensor) -> None:
            if pending.done[0]:
                raise UsageError(
                    f"the gradient of a look-up in table {name!r} comes after the step; call "
                    "backward before it"
                )

        pending.leaf.register_hook(late)
        self._pending[name].append(pending)

    def _admitted(self, table: IdTable, ids: numpy.ndarray, counts: numpy.ndarray) -> numpy.ndarray:
        """The row of each of `ids`, which several processes may have, after new ones got theirs."""
        store = self.stores[table.name]
        if store.optimizer is None:
            raise UsageError(
                f"table {table.name!r} has no optimizer; make it by `optimizer`, or call `eval` "
                "for look-ups alone"
            )
        unique, numbers = ids, None
        if self.processes.ranks > 1:
            unique, numbers, _ = unique_integers(ids)
            sums = numpy.zeros(len(unique), numpy.int64)
            numpy.add.at(sums, numbers, counts)
            counts = sums
        rows = store.admit(unique)
        store.met(rows, counts)
        return rows if numbers is None else rows[numbers]

    def _values(self, table: IdTable, rows: numpy.ndarray) -> Tensor:
        weight = self.stores[table.name].weight.detach()
        return weight.index_select(0, torch.from_numpy(rows))

    def _frozen(self, table: IdTable, ids: numpy.ndarray, counts: numpy.ndarray) -> Tensor:
        store = self.stores[table.name]
        rows = store.find(ids)
        (missing,) = numpy.nonzero(rows < 0)
        values = self._values(table, rows.clip(min=0))
        if len(missing):
            if table.unknown == "initial":
                instead = store.initializer(ids[missing], table.dim, store.seed)
            else:
                zeros = isinstance(table.unknown, str)
                instead = torch.as_tensor(
                    [0.0] * table.dim if zeros else table.unknown, dtype=torch.float32
                ).expand(len(missing), -1)
            values[torch.from_numpy(missing)] = instead
        self._unknown[table.name] += int(counts[missing].sum())
        self._met[table.name] += int(counts.sum())
        return values

    def _collect(self, names: Sequence[str]) -> None:
        """Before the optimizer's step: gives each table the gradient of the rows that this process
        has, of all look-ups of all processes. One that has a gradient nowhere changes nothing."""
        every = [(name, one) for name in names for one in self._pending[name]]
        with_grad = self.processes.total([int(one.leaf.grad is not None) for _, one in every])
        for _, one in every:
            one.done[0] = True
        pending = [both for both, count in zip(every, with_grad) if count]
        sent, wanted = [], [[] for _ in range(self.processes.ranks)]  # type: ignore[var-annotated]
        for name, one in pending:
            dim = self.tables[name].dim
            grad = torch.zeros_like(one.leaf) if one.leaf.grad is None else one.leaf.grad
            if self.processes.ranks > 1:
                grad = grad.index_select(0, torch.from_numpy(one.asked.order))
            sent.append((grad.reshape(-1), [size * dim for size in one.asked.sizes]))
            for rank, size in enumerate(one.given):
                wanted[rank].append(size * dim)
        received = self.processes.exchange(_by_rank(sent), wanted) if pending else []
        grads: Dict[str, List[Tensor]] = {name: [] for name in names}
        for number, (name, _) in enumerate(pending):
            grads[name] += [of[number] for of in received]
        for name in names:
            self._pending[name].clear()
            rows = [one.rows for of, one in pending if of == name]
            if rows:
                grad = torch.cat(grads[name]).reshape(-1, self.tables[name].dim)
                self._set_grad(self.stores[name], numpy.concatenate(rows), grad, len(rows))

    def _set_grad(self, store: Store, rows: numpy.ndarray, grad: Tensor, look_ups: int) -> None:
        if self.processes.ranks > 1 or look_ups > 1:
            rows, numbers, _ = unique_integers(rows)
            grad = summed(grad, torch.from_numpy(numbers), len(rows))
            if self._average:
                grad /= self.processes.ranks
        store.weight.grad = torch.sparse_coo_tensor(
            torch.from_numpy(rows).unsqueeze(0),
            grad,
            store.weight.shape,
            is_coalesced=True,
            check_invariants=False,
        )

    def _end(self, names: Sequence[str]) -> None:
        """After the step: counts it, and evicts."""
        for name in names:
            store, limit = self.stores[name], self.tables[name].limit
            if store.weight.grad is None:
                continue
            store.weight.grad = None
            store.step += 1
            if limit is not None:
                count = store.count
                gone = limit.evicted(
                    store.ids[:count],
                    store.freqs[:count],
                    store.versions[:count],
                    store.step,
                    self.processes.ranks,
                )
                if gone is not None:
                    store.evict(gone)


def tables_of(module: torch.nn.Module) -> Dict[str, IdEmbeddings]:
    """Those of a module by their paths in it."""
    return {
        path: inner for path, inner in module.named_modules() if isinstance(inner, IdEmbeddings)
    }


def _by_rank(columns: Any) -> Parts:
    """Of pairs (one-dimensional tensor, how much of it each process gets): what each gets."""
    split = [tensor.split(sizes) for tensor, sizes in columns]
    return [list(of) for of in zip(*split)]
