"""The module: look-ups in tables by raw ids, and the optimizers that step their rows.

`migrate.id_tables` has the protocol.
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
from migrate.id_tables.store import Store, refuse_others
from migrate.id_tables.table import IdTable
from migrate.torchrec.optimizers import RowOptimizer
from semisync.common.errors import UsageError


class IdEmbeddings(torch.nn.Module):
    """Tables by raw ids.

    A look-up of a module in training mode, while gradients are recorded, gives rows to new ids and
    counts; any other is frozen, and changes nothing.

    Args:
        tables: their declarations.
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
        """The optimizer of tables' rows; all processes call its `step`.

        Args:
            kind: a class of migrate.torchrec.optimizers.
            tables: names of tables; None: all.
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
        self._attach(optimizer)
        self.optimizers.append(optimizer)
        return optimizer

    def _attach(self, optimizer: RowOptimizer) -> None:
        """Makes the optimizer step the pending look-ups of its tables."""
        names = [name for name, store in self.stores.items() if store.optimizer is optimizer]

        def collect(_: Any, given: Sequence[Any], named: Dict[str, Any]) -> Any:
            """Before a step without a closure; of one with it, at the closure's end."""
            # torch's hook gets the step's arguments, the optimizer itself first.
            (closure,) = (*given[1:], *named.values()) or (None,)
            if closure is None:
                self._collect(names)
                return None

            def closed() -> Any:
                loss = closure()
                self._collect(names)
                return loss

            return given[:1], {"closure": closed}

        # torch has no hook for it: look-ups before a step have gradients of their own.
        zero_grad = optimizer.zero_grad

        def zero_all(set_to_none: bool = True) -> None:
            zero_grad(set_to_none)
            for one in (one for name in names for one in self._pending[name]):
                one.leaf.grad = None

        optimizer.register_step_pre_hook(collect)
        optimizer.register_step_post_hook(lambda *_: self._end(names))
        optimizer.register_state_dict_post_hook(_without_rows)
        optimizer.register_load_state_dict_pre_hook(_with_rows)
        optimizer.zero_grad = zero_all  # type: ignore[method-assign]

    def __getstate__(self) -> Dict[str, Any]:
        """For copies and pickles, whose look-ups no step awaits."""
        return {**self.__dict__, "_pending": {name: [] for name in self.tables}}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        for optimizer in self.optimizers:  # torch's copies have no hooks
            self._attach(optimizer)

    def get_extra_state(self) -> Dict[str, Any]:
        """For `state_dict`: the rows of this process with their slots, and not copied.

        Returns:
            Tensors, text and numbers alone.
        """
        tables = {name: store.state() for name, store in self.stores.items()}
        return {"process": [self.processes.rank, self.processes.ranks], "tables": tables}

    def set_extra_state(self, state: Dict[str, Any]) -> None:
        """For `load_state_dict`: replaces the rows. Make the optimizers first.

        Args:
            state: from `get_extra_state`.

        Raises:
            UsageError: it is another process's, or its tables or slots are others.
        """
        (rank, ranks), own = state["process"], self.processes
        if (rank, ranks) != (own.rank, own.ranks):
            raise UsageError(
                f"the state has the rows of process {rank} of {ranks}, and this is process "
                f"{own.rank} of {own.ranks}; save and load by migrate.id_tables.save and load"
            )
        refuse_others("the state", state["tables"], self.stores)
        self.forget()
        for name, store in self.stores.items():
            store.restore(state["tables"][name])

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
        # `rows` is empty unless the look-up trains: then no leaf takes a gradient.
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
        for name, pending in self._pending.items():
            for one in pending:
                one.done[0] = True
            pending.clear()
            self.stores[name].weight.grad = None

    def collect(self) -> None:
        """Brings the gradients of the look-ups since the last step to the tables' rows.

        The step does so itself. It is for code that looks at gradients before, such as
        torch.amp.GradScaler; all processes call it, after backward.
        """
        self._collect(list(self.tables))

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
        # Without it a gradient after the step would be lost without a word.
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
        # Any row for an id without one: its vector is replaced below.
        values = store.values(rows.clip(min=0))
        if len(missing):
            values[torch.from_numpy(missing)] = table.instead(question.ids[missing], store.seed)
        self._unknown[table.name] += int(question.counts[missing].sum())
        self._met[table.name] += int(question.counts.sum())
        return values

    def _collect(self, names: Sequence[str]) -> None:
        """Gives each table the gradient of the rows that this process has, of all look-ups of all
        processes.

        One that has a gradient nowhere changes nothing.
        """
        every = [(name, one) for name in names for one in self._pending[name]]
        if not every:  # in no process
            return
        # A look-up that has a gradient in one process is exchanged by all.
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


def _without_rows(_: Any, state: Dict[str, Any]) -> Dict[str, Any]:
    """An optimizer's state dict without slots: the module's state dict has them, with the rows."""
    return {**state, "state": {}}


def _with_rows(optimizer: Any, state: Dict[str, Any]) -> Dict[str, Any]:
    """A state dict to load, with the slots that the rows have."""
    if state["state"]:
        raise UsageError(
            "the state of an optimizer of tables by raw ids belongs to their rows; save and load "
            "the module's state dict, which has both, or the tables by migrate.id_tables"
        )
    weights = (one for group in optimizer.param_groups for one in group["params"])
    slots = {number: optimizer.state[weight] for number, weight in enumerate(weights)}
    return {**state, "state": slots}


def tables_of(module: torch.nn.Module) -> Dict[str, IdEmbeddings]:
    """The `IdEmbeddings` of a module, by their paths in it."""
    return {
        path: inner for path, inner in module.named_modules() if isinstance(inner, IdEmbeddings)
    }
