"""The module: look-ups in tables by raw ids, and the optimizers that step their rows.

`migrate.id_tables` tells the protocol.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Type, Union

import numpy
import torch
from torch import Tensor

from migrate.id_tables import features as inputs
from migrate.id_tables import look_up
from migrate.id_tables.exchange import Processes
from migrate.id_tables.initializers import seed_of
from migrate.id_tables.look_up import Pending, Question
from migrate.id_tables.store import Store
from migrate.id_tables.table import IdTable
from migrate.torchrec.optimizers import RowOptimizer
from semisync.common.errors import UsageError


class IdEmbeddings(torch.nn.Module):
    """Tables by raw ids.

    A look-up of a module in training mode, while gradients are recorded, gives rows to new ids and
    counts; any other is frozen, and changes nothing.

    Args:
        tables: what they are.
        seed: of the initializers, in all processes the same.
        average: whether a step takes the mean of the processes' gradients, as
            DistributedDataParallel does, for a loss that is a mean over each process's equal share;
            else their sum.
        group: the processes; None: all.

    Raises:
        UsageError: the tables contradict each other.

    Examples:
        >>> from migrate.id_tables import IdEmbeddings, IdTable
        >>> from migrate.torchrec.optimizers import Adagrad
        >>> tables = IdEmbeddings([IdTable("user", 16, ["user", "friend"])])
        >>> optimizer = tables.optimizer(Adagrad, lr=0.05)
        >>> features = {
        ...     "user": (torch.tensor([2**40, -7]), torch.tensor([0, 1, 2])),  # ids, offsets
        ...     "friend": (torch.tensor([12, 5, -7]), torch.tensor([0, 0, 3])),
        ... }
        >>> tables(features)["friend"].sum().backward()
        >>> optimizer.step()
        >>> tables.rows()
        {'user': 4}
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
                raise UsageError(f"there are two {what} {twice[0]!r}; make an IdEmbeddings of each")
        self.tables = {table.name: table for table in tables}
        self.processes = Processes(group)
        self.stores = {
            table.name: Store(table.name, table.dim, table.initializer, seed_of(seed, table.name))
            for table in tables
        }
        self.optimizers: List[RowOptimizer] = []  # that `optimizer` made
        self._average = average
        self._pending: Dict[str, List[Pending]] = {name: [] for name in self.tables}
        self._met = dict.fromkeys(self.tables, 0)  # ids of frozen look-ups, by table
        self._unknown = dict.fromkeys(self.tables, 0)
        self._agreed = False

    def optimizer(
        self, kind: Type[RowOptimizer], tables: Optional[Sequence[str]] = None, **settings: Any
    ) -> RowOptimizer:
        """What steps the rows of tables; all processes call its `step`.

        Args:
            kind: of migrate.torchrec.optimizers.
            tables: the names; None: all.
            **settings: arguments of `kind`.

        Returns:
            An optimizer.

        Raises:
            UsageError: an unknown table, or one that has an optimizer.
        """
        if not (isinstance(kind, type) and issubclass(kind, RowOptimizer)):
            raise UsageError(f"{kind!r} is not an optimizer of migrate.torchrec.optimizers")
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
        optimizer.register_step_pre_hook(
            lambda _, given, named: self._collect(names, [*given[1:], *named.values()])
        )
        optimizer.register_step_post_hook(lambda *_: self._end(names))
        optimizer.register_load_state_dict_pre_hook(_refuse_state)
        zero_grad = optimizer.zero_grad

        def zero_all(set_to_none: bool = True) -> None:
            zero_grad(set_to_none)
            for one in (one for name in names for one in self._pending[name]):
                one.leaf.grad = None

        optimizer.zero_grad = zero_all  # type: ignore[method-assign]
        self.optimizers.append(optimizer)
        return optimizer

    def forward(self, features: Any) -> Dict[str, Tensor]:
        """The vectors of each feature; all processes call it.

        Args:
            features: a KeyedJaggedTensor; or by name (ids, offsets), or (ids, offsets, weights),
                with offsets [bags + 1]; or the ids alone where the table does not pool.

        Returns:
            By feature float32 [bags, dim], or without pooling [*shape of the ids, dim].

        Raises:
            UsageError: a feature is missing or not as above, or a table that trains has no
                optimizer.
        """
        self.agree()
        tables = list(self.tables.values())
        given = inputs.given(features, tables)
        training = self.training and torch.is_grad_enabled()
        for table in tables if training else ():
            if self.stores[table.name].optimizer is None:
                raise UsageError(
                    f"table {table.name!r} has no optimizer; make it by `optimizer`, or call "
                    "`eval` for look-ups alone"
                )
        asked = [
            look_up.ask(
                torch.cat([given[name].ids for name in table.features]), table.dim, self.processes
            )
            for table in tables
        ]
        questions = look_up.questions(asked, self.processes)
        rows, values = [], []
        for table, question in zip(tables, questions):
            store = self.stores[table.name]
            if training:
                rows.append(self._admitted(store, question))
                values.append(store.values(rows[-1]))
            else:
                values.append(self._frozen(table, question))
        given_rows = [question.given for question in questions]
        found = look_up.answers(values, asked, given_rows, self.processes)
        for table, one, leaf, own, sizes in zip(tables, asked, found, rows, given_rows):
            self._await(table.name, Pending(one, leaf.requires_grad_(), own, sizes, [False]))
        result: Dict[str, Tensor] = {}
        for table, one, leaf in zip(tables, asked, found):
            result.update(inputs.vectors(table, given, leaf, one.places))
        return result

    def rows(self) -> Dict[str, int]:
        """How many rows each table has, in all processes together; all call it.

        Returns:
            {table: rows}.
        """
        counts = self.processes.total([store.count for store in self.stores.values()])
        return dict(zip(self.tables, counts))

    def unknown(self) -> Dict[str, float]:
        """The share of the ids of frozen look-ups, since the last call, that had no row.

        All processes call it.

        Returns:
            {table: share}; 0 where there were no ids.
        """
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
        """Compares the tables of the processes, once.

        Raises:
            UsageError: they differ.
        """
        if not self._agreed:
            seeds = [store.seed for store in self.stores.values()]
            self.processes.agree([f"{t!r} seed {s}" for t, s in zip(self.tables.values(), seeds)])
            self._agreed = True

    def store(self, name: str) -> Store:
        """This process's rows of a table.

        Args:
            name: of the table.

        Returns:
            A `Store`.

        Raises:
            UsageError: there is no table of that name.
        """
        if name not in self.stores:
            raise UsageError(f"there is no table {name!r}, expected one of {sorted(self.stores)}")
        return self.stores[name]

    def _await(self, name: str, pending: Pending) -> None:
        def late(_: Tensor) -> None:
            if pending.done[0]:
                raise UsageError(
                    f"the gradient of a look-up in table {name!r} comes after the step; call "
                    "backward before it"
                )

        pending.leaf.register_hook(late)
        self._pending[name].append(pending)

    def _admitted(self, store: Store, question: Question) -> numpy.ndarray:
        """The row of each id that is asked for, after new ones got theirs; it is counted."""
        if self.processes.ranks == 1:
            rows = store.admit(question.ids)
            store.met(rows, question.counts)
            return rows
        unique, counts, numbers = question.once()
        rows = store.admit(unique)
        store.met(rows, counts)
        return rows[numbers]

    def _frozen(self, table: IdTable, question: Question) -> Tensor:
        store = self.stores[table.name]
        rows = store.find(question.ids)
        (missing,) = numpy.nonzero(rows < 0)
        values = store.values(rows.clip(min=0))
        if len(missing):
            values[torch.from_numpy(missing)] = table.instead(question.ids[missing], store.seed)
        self._unknown[table.name] += int(question.counts[missing].sum())
        self._met[table.name] += int(question.counts.sum())
        return values

    def _collect(self, names: Sequence[str], arguments: Sequence[Any]) -> None:
        """Before the optimizer's step: gives each table the gradient of the rows that this process
        has, of all look-ups of all processes.

        One that has a gradient nowhere changes nothing.

        Args:
            arguments: of the step.
        """
        if any(one is not None for one in arguments):
            raise UsageError(
                "a step of tables by raw ids takes no closure; call backward before it"
            )
        every = [(name, one) for name in names for one in self._pending[name]]
        with_grad = self.processes.total([int(one.leaf.grad is not None) for _, one in every])
        for name, one in every:
            one.done[0] = True
            self._pending[name].clear()
        pending = [both for both, count in zip(every, with_grad) if count]
        if not pending:
            return
        grads = look_up.gradients([one for _, one in pending], self.processes)
        share = 1 / self.processes.ranks if self._average else 1.0
        for name in dict.fromkeys(name for name, _ in pending):
            own = [number for number, (of, _) in enumerate(pending) if of == name]
            rows, grad = look_up.whole(
                [pending[number][1] for number in own], [grads[number] for number in own], share
            )
            self.stores[name].set_grad(rows, grad)

    def _end(self, names: Sequence[str]) -> None:
        for name in names:
            store, limit = self.stores[name], self.tables[name].limit
            if store.weight.grad is None:
                continue
            store.weight.grad = None
            store.step += 1
            if limit is not None:
                counted = store.ids, store.freqs, store.versions
                gone = limit.evicted(*counted, store.step, self.processes.ranks)
                if gone is not None:
                    store.evict(gone)


def _refuse_state(*_: Any) -> None:
    raise UsageError(
        "the state of an optimizer of tables by raw ids belongs to their rows; save and load both "
        "by migrate.id_tables"
    )


def tables_of(module: torch.nn.Module) -> Dict[str, IdEmbeddings]:
    """Those of a module by their paths in it."""
    return {
        path: inner for path, inner in module.named_modules() if isinstance(inner, IdEmbeddings)
    }
