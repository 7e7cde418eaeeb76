"""What a migration is asked for."""

import sys
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

MARGIN = 5e-4  # in AUC
STEPS = 3  # of training
ROWS = 10_000  # whose outputs are compared
CLOSE = 1e-4  # outputs that differ by less may differ by the rounding of many operations
# Of a training step. Where a value differs, other sizes are tried: in one batch rounding may put
# the input of a ReLU on the other side of 0; another formula, rate or slot differs in every batch.
STEP_ROWS = (64, 48, 80)
# Of a value after training steps, relative. A gradient that is a difference of larger numbers has
# 1e-5 of rounding in float32, which optimizers that divide by its size, such as Adam, make larger
# with every step (2e-5 after 3 steps of the demo's model, 5e-4 after 10).
TOLERANCE = 1e-3


class Settings(NamedTuple):
    """A migration.

    Attributes:
      checkpoint: the prefix.
      data: a data set, as `semisync score` reads it.
      label: its column of labels.
      out: the folder to write.
      meta: the MetaGraph; by default it stands beside the checkpoint.
      key: a column that names a row.
      output: the tensor that scores; by default what the graph says of itself.
      column: of an output with several per row.
      sigmoid: the output is a logit, whatever the graph says.
      named: (column, input, whether it is sparse) of inputs that take a column of another name.
      feeds: {input: value} of constants.
      types, fills: (pattern of columns, type or value).
      separator: between the values of a sparse field in CSV or TSV.
      python: an interpreter with TensorFlow.
      modules: that it imports first.
      timeout: seconds for each of its answers.
      margin: the largest difference in AUC that does not matter.
      steps: of training to compare; 0 leaves that out.
    """

    checkpoint: str
    data: str
    label: str
    out: str
    meta: Optional[str] = None
    key: Optional[str] = None
    output: Optional[str] = None
    column: Optional[int] = None
    sigmoid: bool = False
    named: Sequence[Tuple[str, str, bool]] = ()
    feeds: Mapping[str, Any] = {}
    types: Sequence[Tuple[str, str]] = ()
    fills: Sequence[Tuple[str, str]] = ()
    separator: str = "|"
    python: str = sys.executable
    modules: Sequence[str] = ()
    timeout: float = 600.0
    margin: float = MARGIN
    steps: int = STEPS

    @property
    def converted(self) -> str:
        """The folder of the converted model."""
        return "{}/converted".format(self.out)

    def file(self, name: str) -> str:
        """A file of the folder."""
        return "{}/{}".format(self.out, name)

    def reads(self) -> List[Any]:
        """What decides which features a row has, for `results`."""
        return [self.named, self.feeds, self.types, self.fills, self.separator]

    def tensorflow(self) -> List[Any]:
        """What decides how TensorFlow runs, for `results`."""
        return [self.python, self.modules]
