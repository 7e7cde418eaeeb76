"""The settings of a migration."""

import sys
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from parity.io.text_format import TextFormat

MARGIN = 5e-4  # in AUC
STEPS = 3  # of training
ROWS = 10_000  # whose outputs are compared
ROWS_AT_A_TIME = 4096
STEP_ROWS = 64  # of a training step


class Settings(NamedTuple):
    """The settings of a migration.

    Attributes:
        checkpoint: the prefix.
        data: a data set, as `semisync score` reads it.
        label: its column of labels.
        out: the folder to write.
        meta: the MetaGraph; by default it stands beside the checkpoint.
        assets: files elsewhere that the graph fills lookup tables from.
        key: a column that names a row.
        output: the tensor that scores; by default the graph's own output.
        column: the one to take of an output with several per row.
        sigmoid: the output is a logit, whatever the graph says.
        named: (column, input, whether it is sparse) of inputs that take a column of another name.
        inputs: {name: its source} of all inputs, where `named` has what the graph would compute.
        feeds: {input: value} of constants.
        types, fills: (pattern of columns, type or value).
        text: how text files are written, whatever their names.
        python: an interpreter with TensorFlow.
        modules: names of those that it imports first.
        timeout: seconds for each of its answers.
        margin: the largest difference in AUC that does not matter.
        steps: of training to compare; 0 leaves that out.
        batch_size: rows at a time; None: ROWS_AT_A_TIME, and STEP_ROWS of a step.
        plan: arguments of `migrate.plan`.
    """

    checkpoint: str
    data: str
    label: str
    out: str
    meta: Optional[str] = None
    assets: Sequence[str] = ()
    key: Optional[str] = None
    output: Optional[str] = None
    column: Optional[int] = None
    sigmoid: bool = False
    named: Sequence[Tuple[str, str, bool]] = ()
    inputs: Mapping[str, str] = {}
    feeds: Mapping[str, Any] = {}
    types: Sequence[Tuple[str, str]] = ()
    fills: Sequence[Tuple[str, str]] = ()
    text: Optional[TextFormat] = None
    python: str = sys.executable
    modules: Sequence[str] = ()
    timeout: float = 600.0
    margin: float = MARGIN
    steps: int = STEPS
    batch_size: Optional[int] = None
    plan: Mapping[str, Any] = {}

    @property
    def converted(self) -> str:
        """The folder of the converted model."""
        return "{}/converted".format(self.out)

    def file(self, name: str) -> str:
        """A file of the folder."""
        return "{}/{}".format(self.out, name)

    def reads(self) -> List[Any]:
        """The settings that decide a row's features, for `results`."""
        return [self.named, self.feeds, self.types, self.fills, self.text, self.batch_size]

    def converts(self) -> List[Any]:
        """The settings that decide the conversion, beside checkpoint and graph, for `results`."""
        return [self.output, *sorted(self.inputs), *sorted(self.assets), sorted(self.plan.items())]

    def tensorflow(self) -> List[Any]:
        """The settings that decide how TensorFlow runs, for `results`."""
        return [self.python, self.modules]
