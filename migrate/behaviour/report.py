"""The results of a comparison."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

FORWARD_SCHEMA = "semisync.forward/1"
TRAINING_SCHEMA = "semisync.training/1"
SCORES_SCHEMA = "semisync.scores/1"
TORCH = "torch"  # the leg that is the conversion itself


class Place(NamedTuple):
    """The position of two values.

    Attributes:
        file, row: the file, and the row in it, counted from 1.
        position: the index in the batch.
        tensorflow, other: the values.
    """

    file: str
    row: Optional[int]
    position: Tuple[int, ...]
    tensorflow: Any
    other: Any


class OutputDifference(NamedTuple):
    """The difference of one output of one leg from TensorFlow's, over all rows.

    Attributes:
        leg: "torch", or the export that onnxruntime ran.
        absolute: the largest difference, and where; infinite where the shapes differ.
        relative: the largest difference in TensorFlow's value, and where.
        beyond: rows with a value that is too far from TensorFlow's.
    """

    output: str
    leg: str
    absolute: float
    absolute_at: Optional[Place]
    relative: float
    relative_at: Optional[Place]
    beyond: int


class NodeDifference(NamedTuple):
    """The first node in the order of the graph that differs although its inputs agree.

    Attributes:
        variables: those that it reads.
        changed: those that differ between the conversion and the checkpoint, or the file of its
            constants.
        line: number and text of the line of model.py that computes it, if that line was edited.
    """

    node: str
    op: str
    at: Place
    variables: List[str]
    changed: List[str]
    line: Optional[Tuple[int, str]] = None


class ForwardReport(NamedTuple):
    """How the rows of a model differ from TensorFlow's.

    Attributes:
        rows: how many were compared.
        total: how many the data set has.
        outputs: of each leg that ran.
        first: the first node that differs; None if there is none.
        skipped: legs that did not run, and why.
        notes: how both were run.
        fixed: the only number of rows that model.py takes at a time; None: it takes any.
    """

    rows: int
    total: int
    outputs: List[OutputDifference]
    first: Optional[NodeDifference]
    skipped: Dict[str, str]
    notes: List[str]
    fixed: Optional[int] = None

    @property
    def equal(self) -> bool:
        """Whether no row of torch's differs. onnxruntime is only a witness: if torch returns
        TensorFlow's values and an export does not, the export is wrong."""
        return not any(output.beyond for output in self.outputs if output.leg == TORCH)

    def to_json(self) -> Dict[str, Any]:
        """For a program to read."""
        return {"schema": FORWARD_SCHEMA, "equal": self.equal, **_plain(self._asdict())}


class ScorePlace(NamedTuple):
    """The position of two scores.

    Attributes:
        row: of the data set, counted from 1.
        key: of the row; None if that is its number.
        tensorflow, torch: the scores.
    """

    row: int
    key: Any
    tensorflow: Any
    torch: Any


class ScoresReport(NamedTuple):
    """How the scores of all rows differ from TensorFlow's.

    Attributes:
        rows: how many there are.
        largest, at: the largest difference, and where; of the rows that are too far from
            TensorFlow's, if there are any.
        suspects: how many rows' scores differ by more than the tolerance.
        judged: how many of these, the ones that differ most, were compared with TensorFlow's own
            rounding.
        beyond: how many of these differ by more than that, too.
        first: the first node that differs; None if there is none.
    """

    rows: int
    largest: float
    at: Optional[ScorePlace]
    suspects: int
    judged: int
    beyond: int
    first: Optional[NodeDifference]

    @property
    def equal(self) -> bool:
        """Whether no row of torch's differs."""
        return not self.beyond

    def to_json(self) -> Dict[str, Any]:
        """For a program to read."""
        return {"schema": SCORES_SCHEMA, "equal": self.equal, **_plain(self._asdict())}


class StepDifference(NamedTuple):
    """A value that differs after a training step.

    Attributes:
        kind: "loss", "gradient", "parameter", "slot", "statistic", "counter" or "dropout".
        name: TensorFlow's.
        step: from 1.
        relative: as `migrate.model.training.steps` measures it.
    """

    kind: str
    name: str
    step: int
    relative: float


class TrainingReport(NamedTuple):
    """The result of training steps.

    Attributes:
        steps: taken.
        largest: the largest difference of each kind.
        exceeded: the first one beyond the tolerance.
        neutral: parameters on which the loss does not depend, with their differences, which do not
            count.
        compared: tensors of each kind, after each step.
        left_out: variables that a step changes and torch does not.
        notes: how both were run.
        lost: a sentence on trained state that the conversion lacks; then no step was taken.
        begun: the optimizers' state that the checkpoint lacks; it started over on both sides.
        unchecked: sentences on parts that the verdict does not cover.
    """

    steps: int
    tolerance: float
    largest: List[StepDifference]
    exceeded: Optional[StepDifference]
    neutral: Dict[str, float]
    compared: Dict[str, int]
    left_out: List[str]
    notes: List[str]
    lost: Optional[str] = None
    begun: Sequence[str] = ()
    unchecked: Sequence[str] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing is lost, and nothing differs by more than the tolerance."""
        return self.exceeded is None and self.lost is None

    def to_json(self) -> Dict[str, Any]:
        """For a program to read."""
        return {"schema": TRAINING_SCHEMA, "equal": self.equal, **_plain(self._asdict())}


def _plain(value: Any) -> Any:
    """The value for JSON: without named tuples and infinities."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value
