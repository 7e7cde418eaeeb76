"""Tables by raw id on both sides: TensorFlow identifies rows by their ids, torch by their
positions.

A new id begins with random values of the graph's initializer. Here it begins with zeros on both
sides, unless the initializer is a constant.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Iterator, List, Mapping

import numpy as np
import torch

from migrate.behaviour.in_tensorflow import Gradient
from migrate.behaviour.subject import Subject, draws
from migrate.graph.lowering.by_id import defaults, tables_by_id
from migrate.manifest.naming import ids_of
from migrate.model.training.build import Training
from migrate.runtime.tables.by_id import TableById
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge

Values = Dict[str, np.ndarray]


def zeros_fed(subject: Subject) -> Dict[str, Any]:
    """TensorFlow's feeds with which new rows begin with zeros instead of random values."""
    drawn = {edge: dim for edge, dim in defaults(subject.raw).items() if draws(subject, [edge])}
    return {of_edge(edge): [[0.0] * dim] for edge, dim in drawn.items()}


def begin_with_zeros(fed: Mapping[str, Any], module: torch.nn.Module) -> None:
    """Makes new rows of a module's tables begin with zeros, if `zeros_fed` returned any feed."""
    for table in module.modules() if fed else ():
        if isinstance(table, TableById):
            table.default = torch.zeros(table.weight.shape[1])


class TablesById:
    """The tables by raw id in a training.

    Attributes:
        tensors: the tensors to fetch for each table and slot, by name: the names of the keys and
            values of each shard.

    Raises:
        BadInput: the graph does not have them.
    """

    def __init__(self, subject: Subject, training: Training) -> None:
        self._tables: Dict[str, TableById] = {}
        self.tensors: Dict[str, List[List[str]]] = {}
        shards = tables_by_id(subject.raw)
        for node, parameter in training.module.tensorflow_nodes.items():
            if node not in shards:
                continue
            module = training.module.get_submodule(parameter.attribute.rpartition(".")[0])
            slots = training.optimizer.slots.get(parameter.attribute, {})
            for name in (node, *slots.values()):
                if not shards[name].exports:
                    raise BadInput(
                        f"{subject.raw.path}: nothing in the graph gives the keys and values of "
                        f"{name!r}, so that its rows after a step cannot be compared"
                    )
                self._tables[name] = module
                self.tensors[name] = [[f"{one}:0", f"{one}:1"] for one in shards[name].exports]

    def gradients(self, given: Mapping[str, Gradient]) -> Mapping[str, Gradient]:
        """The gradients with rows instead of ids; read them once the module has added the ids."""
        return _Lazily(
            {name: functools.partial(self._gradient, name, given[name]) for name in given}
        )

    def rounding(self, given: Values, gradients: Mapping[str, Gradient]) -> Values:
        """Reorders the rounding of sums from ascending ids to ascending rows."""
        found = dict(given)
        for name in self._tables.keys() & given.keys():
            ids = np.unique(np.asarray(gradients[name][1]))
            rows, _ = self._tables[name].find(torch.tensor(ids))
            # The child gives the sums by ascending id, the comparison takes them by ascending row.
            found[name] = given[name][rows.argsort().cpu().numpy()]
        return found

    def after(self, values: Values, ids: Values) -> Values:
        """`values` with table and slot rows in torch's order, NaN for ids that only torch has.

        Raises:
            BadInput: torch lacks an id.
        """
        found = dict(values)
        for name, own in ids.items():
            wanted = self._tables[name].ids.cpu().numpy()
            more = np.setdiff1d(own, wanted)
            if len(more):
                raise BadInput(f"after a step torch's {name!r} lacks the id {more[0]}")
            there = np.isin(wanted, own)
            # torch may have added an id that TensorFlow did not: its row equals nothing.
            rows = np.full((len(wanted), *values[name].shape[1:]), np.nan, values[name].dtype)
            rows[there] = values[name][np.searchsorted(own, wanted[there])]
            found[name], found[ids_of(name)] = rows, wanted
        return found

    def _gradient(self, name: str, given: Gradient) -> Gradient:
        values, ids = given
        if name not in self._tables or ids is None:
            return given
        rows, known = self._tables[name].find(torch.tensor(np.array(ids).reshape(-1)))
        if not known.all():
            raise BadInput(f"TensorFlow's gradient has ids that torch's {name!r} lacks")
        return values.reshape(len(rows), -1), rows.cpu().numpy()


class _Lazily(Mapping[str, Any]):
    """A mapping whose values are the results of functions, called when they are read."""

    def __init__(self, made: Dict[str, Callable[[], Any]]) -> None:
        self._made = made

    def __getitem__(self, name: str) -> Any:
        return self._made[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
