"""A plug-in's descriptions of an op of the graph, and of its files."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence, Tuple, Union


class Shard(NamedTuple):
    """One file of a table.

    Attributes:
        path: of the file.
        rows: how many it has.
        read: called for each reading: yields chunks of (ids int64 [n], rows float32 [n, dim],
            {slot: float32 [n, dim]}) with as many rows together.
    """

    path: str
    rows: int
    read: Callable[[], Iterable[Tuple[Any, Any, Mapping[str, Any]]]]


class Table(NamedTuple):
    """A table by raw id.

    Attributes:
        dim: of a row.
        shards: in which each id stands once.
        slots: the optimizer's, named <Optimizer>_<slot> by TensorFlow's names,
            "Adagrad_accumulator"; others keep their names.
    """

    dim: int
    shards: Sequence[Shard]
    slots: Sequence[str] = ()


class LookUp(NamedTuple):
    """An op that looks up rows of a table.

        LookUp(table=op.text("table"), ids=op.inputs[0])

    Attributes:
        table: its name, as `read_tables` has it.
        ids: one of the op's inputs: integers of any shape; the rows are [*shape, dim].
        default: the vector of an absent id: a number, or one of the op's inputs, float
            [dim] or [n, dim]; a new id begins with it when the model trains on.
        output: number of the op's output that has the rows.
    """

    table: str
    ids: str
    default: Union[float, str] = 0.0
    output: int = 0


class Training(NamedTuple):
    """An op that updates rows of a table.

        Training(
            table=op.text("table"),
            ids=op.inputs[0],
            gradient=op.inputs[1],
            optimizer="Adagrad",
            hyperparameters={"learning_rate": op.number("lr")},
        )

    Attributes:
        table: its name, as `read_tables` has it.
        ids, gradient: inputs of the op: [n] and [n, dim]. The gradients of an id that repeats are
            summed before the update: a server that applies them one by one computes something else
            for all but gradient descent.
        optimizer: TensorFlow's name: "Adagrad", "Adam", "Ftrl", "GradientDescent", ...
        hyperparameters: by TensorFlow's names, all that its training op takes: numbers, or inputs
            of the op; of Adam "beta1_power" and "beta2_power" too.
        begins: slot -> its initial value for a new id, where not TensorFlow's default.
    """

    table: str
    ids: str
    gradient: str
    optimizer: str
    hyperparameters: Mapping[str, Union[float, str]]
    begins: Mapping[str, float] = {}
