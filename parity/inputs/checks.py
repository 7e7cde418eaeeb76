"""Requirements on labels, scores, weights, clusters and margin, checked before any computation.

1. Labels are 0 or 1, or -1 or 1, and both occur. They, scores and weights are numbers, decimals, or
   text that writes numbers or true and false.
2. Scores are finite, and so is the difference of two that are compared. They need not be
   probabilities, and are not the label.
3. Weights are 0 or above it, and neither class weighs nothing. The others are within 1e100 of 1
   either way, so that no product or square of them leaves double precision.
4. Clusters, slices and days are names or numbers; none is missing.
5. The margin is from 1e-9 to below 1.

Each check of a column returns the array in the dtype that the computation uses and raises BadInput
with a sentence that names the column and the first row at fault. That of the margin raises
UsageError.
"""

from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from semisync.common.errors import BadInput, UsageError

LARGEST_SCORE = 1e300
LARGEST_WEIGHT = 1e100
SUM_TO_1 = 1e-3  # error of the sum of both classes' probabilities, in half precision or few digits
NOT_BOTH_CLASSES = (
    "does not hold the probabilities of both classes, two numbers that sum to 1, of which the "
    "second is the score"
)
_WORDS = {"true": 1.0, "false": 0.0}
_LEAST_MARGIN = 1e-9  # it takes 5e4 rows of each class, and all of them ranked alike


class Column(NamedTuple):
    """The origin of values, for the messages: an argument, or a column of one or more files."""

    name: str
    file: Optional[str] = None
    parts: Tuple[Tuple[str, int], ...] = ()  # files and their rows, where `file` stands for several
    skipped: int = 0  # rows of the file before the first value

    def __str__(self) -> str:
        return self.name if self.file is None else f"{self.file}: column {self.name!r}"

    def at(self, index: int) -> str:
        """Names one value: by index for an argument, by data row from 1 for a file."""
        if self.file is None:
            return f"{self.name}[{index}]"
        index += self.skipped
        for file, rows in self.parts:
            if index < rows:
                return f"{self._replace(file=file)} in row {index + 1:d}"
            index -= rows
        return f"{self} in row {index + 1:d}"


class LabelValues:
    """Labels that come in parts, each perhaps of one class: 0 or 1 in all parts, or -1 or 1."""

    def __init__(self) -> None:
        self._negative: Optional[int] = None  # the label of the negative rows so far

    def positive(self, values: Any, column: Column) -> np.ndarray:
        """bool (n,): which rows of the next part are positive."""
        labels = _numbers(values, column)
        positive = labels == 1
        if self._negative is None and not positive.all():
            self._negative = -1 if (positive | (labels == -1)).all() else 0
        wrong = ~positive & (labels != self._negative)
        if wrong.any():
            index = int(wrong.argmax())
            raise BadInput(
                f"{column.at(index)} is {labels[index]}; a label must be 0 or 1, or all be -1 or 1"
            )
        return positive


def check_labels(values: Any, column: Column) -> np.ndarray:
    """bool (n,): which rows are positive. Refuses other values and one class only."""
    labels = LabelValues().positive(values, column)
    refuse_one_class(int(np.count_nonzero(labels)), labels.size, column)
    return labels


def refuse_one_class(positives: int, rows: int, column: Column) -> None:
    """Raises BadInput where all rows are positive, or none is."""
    if positives in (0, rows):
        raise BadInput(
            f"{column}: all {rows} labels are {int(positives > 0)}; "
            "an AUC needs rows of both classes"
        )


def check_scores(values: Any, column: Column) -> np.ndarray:
    """float32 or float64 (n,), finite. Half precision is widened, integers become float64."""
    scores = _numbers(values, column)
    narrow = scores.dtype.kind == "f" and scores.dtype.itemsize <= 4
    scores = np.ascontiguousarray(scores, dtype=np.float32 if narrow else np.float64)
    _finite(scores, column, "a score")
    return scores


def check_differences(scores: np.ndarray, column: Column) -> None:
    """Refuses checked scores so large that the difference of two need not be finite."""
    if max(-float(scores.min()), float(scores.max())) > LARGEST_SCORE:
        index = int((np.abs(scores) > LARGEST_SCORE).argmax())
        raise BadInput(
            f"{column.at(index)} is {scores[index]}; scores to compare are expected to lie within "
            f"+-{LARGEST_SCORE:g}"
        )


def check_not_label(scores: np.ndarray, positive: np.ndarray, column: Column) -> None:
    """Refuses checked scores that are the label: one for each positive row, one for the others."""
    refuse_label(column, *((s.min(), s.max()) for s in (scores[~positive], scores[positive])))


def refuse_label(
    column: Union[Column, str], negatives: Sequence[float], positives: Sequence[float]
) -> None:
    """Refuses scores of which each class has one; given are each class's least and largest."""
    if negatives[0] == negatives[1] != positives[0] == positives[1]:
        raise BadInput(
            f"{column} is the label itself: it is {negatives[0]:g} in every row with label 0 and "
            f"{positives[0]:g} in every row with label 1; a model's scores are expected"
        )


def check_weights(values: Any, positive: np.ndarray, column: Column) -> np.ndarray:
    """float64 (n,), finite and >= 0, with some weight in each class."""
    weights = check_weight_values(values, column)
    check_same_length(positive, weights, column)
    for label, rows in ((1, positive), (0, ~positive)):
        if not weights[rows].any():
            raise BadInput(f"{column}: every row with label {label} has weight 0")
    return weights


def check_one_model(
    labels: Any, scores: Any, weights: Any
) -> Tuple[np.ndarray, np.ndarray, Optional[np.ndarray]]:
    """Checked labels, bool (n,), scores, and weights where there are any."""
    check_same_order(labels, {"scores": scores, "weights": weights})
    positive = check_labels(labels, Column("labels"))
    scores = check_scores(scores, Column("scores"))
    check_same_length(positive, scores, Column("scores"))
    if weights is not None:
        weights = check_weights(weights, positive, Column("weights"))
    return positive, scores, weights


def check_weight_values(values: Any, column: Column) -> np.ndarray:
    """float64 (n,), finite and >= 0, of a part of the rows."""
    weights = _numbers(values, column)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    _finite(weights, column, "a weight")
    if weights.min() < 0:
        index = int((weights < 0).argmax())
        raise BadInput(f"{column.at(index)} is {weights[index]}; a weight must not be negative")
    extreme = (weights > LARGEST_WEIGHT) | ((weights < 1 / LARGEST_WEIGHT) & (weights != 0))
    if extreme.any():
        index = int(extreme.argmax())
        raise BadInput(
            f"{column.at(index)} is {weights[index]}; a weight must be 0 or between "
            f"{1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        )
    return weights


def check_clusters(values: Any, column: Column) -> np.ndarray:
    """int64 (n,): a code from 0 for each row's cluster, equal for equal names."""
    clusters = check_names(values, column)
    if clusters.dtype.kind == "f":
        _finite(clusters, column, "a cluster")
    if clusters.dtype.kind in "iu":
        low, high = int(clusters.min()), int(clusters.max())
        if high - low < 4 * clusters.size:  # dense enough to serve as codes, without a sort
            codes = clusters - clusters.dtype.type(low)
            # Unsigned, as from -100 to 100 is too far for int8, whose bits alone are right then.
            return codes.view(f"u{codes.itemsize}").astype(np.int64)
    elif clusters.dtype.kind not in "bfUSOM":
        raise BadInput(f"{column} holds {clusters.dtype}; clusters must be numbers or strings")
    return distinct(clusters, column)[1].astype(np.int64)


def check_names(values: Any, column: Column) -> np.ndarray:
    """(n,): values that name parts of the rows, as they are; refuses a missing one."""
    names = _vector(values, column)
    if isinstance(values, (list, tuple)):  # a nan among text is text to NumPy
        missing = np.fromiter(map(is_missing, values), bool)
    elif names.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, names), bool)
    else:
        missing = names != names
    if missing.any():
        raise BadInput(f"{column.at(int(missing.argmax()))} is missing; every row needs a value")
    return names


def distinct(names: np.ndarray, column: Column) -> Tuple[np.ndarray, np.ndarray]:
    """The values that occur, rising, and int (n,): which of them each row has."""
    try:
        return np.unique(names, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{column} mixes kinds of values ({error}); use one kind of name") from error


def check_same_length(first: np.ndarray, values: np.ndarray, column: Column) -> None:
    """Refuses a column that is longer or shorter than the labels."""
    if len(first) != len(values):
        raise BadInput(f"{column} has {len(values)} rows, but there are {len(first)} labels")


def check_same_order(labels: Any, others: Mapping[str, Any]) -> None:
    """Refuses a pandas.Series with the labels' index in another order, since rows count by place.

    Another index says nothing: predictions count from 0 where the rows are a part of a table.
    """
    index: Any = getattr(labels, "index", None)
    # A list has `index` too, a method; that of pandas has isin.
    for name, values in others.items():
        its: Any = getattr(values, "index", None)
        if (
            hasattr(index, "isin")
            and hasattr(its, "isin")
            and len(its) == len(index)
            and not its.equals(index)
            and its.isin(index).all()
        ):
            raise BadInput(
                f"{name} has the labels' index in another order, but rows are compared by place: "
                f"try {name}.reindex(labels.index), or .to_numpy() on both"
            )


def check_margin(margin: float) -> None:
    """Refuses a margin that any two models keep, and one that no sample of rows could resolve."""
    if not _LEAST_MARGIN <= margin < 1:
        raise UsageError(
            f"the margin is {margin}; a difference in AUC is expected, at least {_LEAST_MARGIN:g} "
            "and below 1, such as 0.0005"
        )


def _vector(values: Any, column: Column) -> np.ndarray:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # lists of unequal length, bfloat16
        raise BadInput(f"{column} is not an array of one value per row: {error}") from error
    if array.ndim != 1:
        raise BadInput(
            f"{column} has shape {array.shape}; one value per row is expected (try .ravel())"
        )
    if not array.size:
        raise BadInput(f"{column} has no rows; at least one row of each class is needed")
    if np.ma.is_masked(values):
        index = int(np.ma.getmaskarray(values).argmax())
        raise BadInput(f"{column.at(index)} is masked; every row needs a value")
    return array


def _numbers(values: Any, column: Column) -> np.ndarray:
    """(n,) of booleans, integers or floating point; decimals and text that writes numbers too."""
    array = _vector(values, column)
    if array.dtype.kind in "OUS":
        array = _parsed(array, column)
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{column} holds {array.dtype} values, not numbers")
    return array


def _parsed(array: np.ndarray, column: Column) -> np.ndarray:
    """float64 (n,) of objects or text; true and false, in any case, are 1 and 0."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return np.array(
            [_number(value, index, column) for index, value in enumerate(array.tolist())]
        )


def _number(value: Any, index: int, column: Column) -> float:
    if is_missing(value):
        raise BadInput(f"{column.at(index)} is missing; every row needs a value")
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    if isinstance(text, str) and text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{column.at(index)} is {value!r}; a number is expected") from error


def is_missing(value: Any) -> bool:
    """Whether it is None, nan, or pandas' NaT or NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA != NA is NA, which has no truth value
        return True
    except ValueError:  # an array
        return False


def _finite(array: np.ndarray, column: Column, kind: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        index = int(finite.argmin())
        raise BadInput(f"{column.at(index)} is {array[index]}; {kind} must be finite")
