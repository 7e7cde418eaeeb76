"""What a builder of the zoo returns, and the forms in which a graph is built.

A builder `build(mode)` adds a model to the default graph. TRAINING is the graph whose MetaGraph is
saved. EVALUATION is the graph of the same variables that TensorFlow scores with, and STEPS the one
that is trained step by step with nothing random in it; a model whose training phase and dropout are
fed is the same in all three.
"""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple


class Mode(NamedTuple):
    """training: whether the layers are built for training; noise: whether dropout is at work."""

    training: bool
    noise: bool

    def rate(self, rate):
        """The rate of a dropout layer."""
        return rate if self.noise else 0.0


TRAINING, STEPS, EVALUATION = Mode(True, True), Mode(True, False), Mode(False, False)


class Trained(NamedTuple):
    """An optimizer and the variables that it trains."""

    optimizer: Any
    variables: Sequence[Any]


class Flag(NamedTuple):
    """A fed value that is no feature: training phase, keep_prob, a fed learning rate."""

    tensor: Any
    training: Any
    evaluation: Any
    steps: Any  # as in training, without noise


class Model(NamedTuple):
    """A model in the default graph.

    Attributes:
        inputs: {feature of the log: tensor or SparseTensor, where it is fed}.
        labels: the same for what only the loss needs.
        outputs: {"logits" or "probabilities", with the task's name before: tensor}.
        drawn: tensors that the loss draws at random; `steps.npz` holds their values.
    """

    inputs: Dict[str, Any]
    labels: Dict[str, Any]
    outputs: Dict[str, Any]
    loss: Any
    train_op: Any
    optimizers: List[Trained]
    flags: Tuple[Flag, ...] = ()
    drawn: Tuple[Any, ...] = ()


def phase(tensor):
    """The flag of a placeholder `training`."""
    return Flag(tensor, True, False, True)


def keep_prob(tensor, value):
    """The flag of a placeholder `keep_prob`, or of a rate when `value` is one of 0 to 0.5."""
    return Flag(tensor, value, 1.0, 1.0)


def rate(tensor, value):
    """The flag of a placeholder of a dropout's rate."""
    return Flag(tensor, value, 0.0, 0.0)
