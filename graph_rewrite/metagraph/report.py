"""The findings and changes of a rewrite: as text for people, as JSON for programs."""

import collections
import dataclasses
from typing import Any, Dict, List, NamedTuple

from semisync.common.sentences import some_of
from semisync.common.terminal import shown

SCHEMA = "semisync.rewrite/1"

_NAMED = 8  # how many names a line lists at most


class Trained(NamedTuple):
    """One trained variable.

    Attributes:
        variable: its name.
        kind: "dense" or "sparse", as its gradient.
        by: the types of the ops that train it.
        device: its own.
    """

    variable: str
    kind: str
    by: List[str]
    device: str


@dataclasses.dataclass
class Report:
    """The report of one rewrite.

    Attributes:
        nodes: how many the MetaGraph had.
        settings: {option: value} of the optimizer.
        trained: list of `Trained`.
        chiefs: names of the ops that write, and that the chief runs once per global step.
        stand_ins: names of the ops that are fetched as before, and now train semi-synchronously.
        fed: names of the hyperparameters that a job may feed; they go with each batch.
        moved: names of ops with a batch that the train op waits for, instead of the chief.
        at_once: names of the variables of which a warning says that every batch changes them.
        added: how many ops were added.
        changes: sentences on the other changes.
        left: sentences on the parts left alone, and why.
        warnings: sentences on what will not train as meant, unless something is done.

    Examples:
        >>> saver = tf.train.import_meta_graph("model.ckpt-40000.meta")
        >>> meta_graph = tf.train.export_meta_graph()
        >>> _, report = graph_rewrite.semi_synchronize(meta_graph, batches_per_step=2)
        >>> [one.variable for one in report.trained]
        ['cities', 'products', 'kernel']
    """

    nodes: int
    settings: Dict[str, Any]
    trained: List[Trained]
    chiefs: List[str]
    stand_ins: List[str]
    fed: List[str]
    moved: List[str]
    at_once: List[str]
    added: int = 0
    changes: List[str] = dataclasses.field(default_factory=list)
    left: List[str] = dataclasses.field(default_factory=list)
    warnings: List[str] = dataclasses.field(default_factory=list)

    def to_dict(self):
        """The report for programs.

        Returns:
            The dict that `semisync rewrite --json` prints.
        """
        return dict(
            vars(self), schema=SCHEMA, trained=[trained._asdict() for trained in self.trained]
        )

    def __str__(self):
        return "\n".join(map(shown, self.lines()))

    def lines(self):
        """The report for people.

        Returns:
            A list of lines.
        """
        trained = {(each.variable, each.kind, "+".join(each.by)) for each in self.trained}
        kinds = collections.Counter((kind, by) for _, kind, by in trained)
        lines = ["found    {} ops".format(self.nodes)]
        for (kind, by), count in sorted(kinds.items()):
            lines.append("         {} {} variables, trained by {}".format(count, kind, by))
        lines.append("chief    runs once per global step: " + some(self.chiefs))
        lines.append("trains   as before, by its name: " + some(self.stand_ins))
        if self.fed:
            lines.append("fed      may be, and goes with each batch: " + some(self.fed))
        if self.moved:
            lines.append("waits    for every batch, and no longer the chief: " + some(self.moved))
        lines.append("added    {} ops".format(self.added))
        lines += ["changed  " + sentence for sentence in self.changes]
        lines += ["left     " + sentence for sentence in self.left]
        lines += ["warning  " + sentence for sentence in self.warnings]
        return lines


def some(names):
    """A possibly long list of names as text, each name once."""
    names = list(collections.OrderedDict.fromkeys(names))
    return some_of(names, _NAMED) or "none"
