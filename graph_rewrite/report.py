"""What a rewrite found, changed and left alone; for people, and as JSON for programs."""

import collections
from typing import Dict, Set

SCHEMA = "semisync.rewrite/1"
_NAMED = 8  # how many names a line of text lists at most

# One trained variable. `kind`: "dense" or "sparse". `by`: the types of the ops that train it.
Trained = collections.namedtuple("Trained", "variable kind by device")


class Report:
    """Of one rewrite.

    Attributes:
      settings: {option: value} of the optimizer.
      nodes: how many the MetaGraph had.
      trained: list of Trained.
      chiefs: names of the ops that the chief runs once a global step, after the gradients are in.
      stand_ins: names of the ops that are fetched as before, and now train semi-synchronously.
      moved: names of ops with a batch that the train op waits for, instead of the chief.
      added: how many ops were added.
      changes: sentences on what else was changed.
      left: sentences on what was left alone, and why.
    """

    def __init__(self, nodes, settings):
        self.nodes = nodes
        self.settings = settings
        self.trained, self.chiefs, self.stand_ins, self.moved = [], [], [], []
        self.added = 0
        self.changes, self.left = [], []

    def batch_norms(self, found):
        """Says what became of the moving statistics of BatchNorms, a list."""
        shared = [each.name for each in found if each.shareable]
        if shared:
            self.changes.append(
                "the moving statistics of {} BatchNorms share the fate of their batch: {}".format(
                    len(shared), _some(shared)
                )
            )
        for each in found:
            for sentence in (each.left_alone, each.finding):
                if sentence and not each.shareable:
                    self.left.append("the BatchNorm {}: {}".format(each.name, sentence))
                elif sentence:
                    self.changes.append(
                        "the BatchNorm {}, as it was exported: {}; the chief makes its updates "
                        "now, so fetch them by name no more".format(each.name, sentence)
                    )

    def shared_updates(self, found):
        """Says which other updates share the fate of their batch, a list of `Shared`."""
        if found:
            self.changes.append(
                "{} updates of variables share the fate of their batch: {}".format(
                    len(found), _some(["{} ({})".format(each.op, each.how) for each in found])
                )
            )

    def to_dict(self):
        """What `--json` writes."""
        return dict(
            vars(self), schema=SCHEMA, trained=[trained._asdict() for trained in self.trained]
        )

    def __str__(self):
        kinds = collections.Counter(
            (trained.kind, "+".join(trained.by)) for trained in self.trained
        )
        lines = ["found    {} ops".format(self.nodes)]
        for (kind, by), count in sorted(kinds.items()):
            lines.append("         {} {} variables, trained by {}".format(count, kind, by))
        lines.append("chief    runs once a global step: " + _some(self.chiefs))
        lines.append("trains   as before, by its name: " + _some(self.stand_ins))
        if self.moved:
            lines.append("waits    for every batch, and no longer the chief: " + _some(self.moved))
        lines.append("added    {} ops".format(self.added))
        lines += ["changed  " + sentence for sentence in self.changes]
        lines += ["left     " + sentence for sentence in self.left]
        return "\n".join(lines)


def report_on(found, optimizer, shareable=()):
    """The `Report` of a `TrainingGraph` and the `ExistingOptimizer` built on it.

    Args:
      shareable: the names of the ops that `shared_updates` can name.
    """
    report = Report(
        len(found.nodes),
        {
            "batches_per_step": optimizer.batches_per_step,
            "staleness": None if optimizer._staleness is None else str(optimizer._staleness),
            "on_stale": optimizer.on_stale,
            "sparse_mean": optimizer._sparse_mean,
            "paced": optimizer.paced,
            "in_flight": optimizer.in_flight,
        },
    )
    for update in found.updates:
        kind = "dense" if update.indices is None else "sparse"
        by = [found.nodes[name].op for name in update.ops]
        report.trained.append(Trained(update.variable.name, kind, by, update.variable.device))
    chiefs = [found.nodes[name] for name in found.part.needs]
    report.chiefs = sorted(node.name for node in chiefs if found.kinds.writes(node))
    report.stand_ins = [name for name in found.stand_ins if found.nodes[name].op != "Const"]
    report.moved = found.waited_for
    sizes = found.sync.replicas_to_aggregate
    if sizes:
        report.changes.append(
            "SyncReplicasOptimizer of {} gradients a step: its accumulators, tokens and queue "
            "runner are not run any more".format(" or ".join(map(str, sorted(sizes))))
        )
    report.left = list(_left_alone(found, shareable))
    return report


def _left_alone(found, shareable):
    """Sentences on what was left alone, and why."""
    written: Dict[bool, Set[str]] = {True: set(), False: set()}
    for op, variable in found.each_batch.items():
        if variable not in found.summed:
            written[op in shareable].add(variable)
    if found.worker.why:
        yield "the devices: " + found.worker.why
    kinds = [
        (
            found.part.left,
            "ops after the training stay each worker's own: they need a batch, reset what batches "
            "add up, or only read",
        ),
        (
            sorted(written[True]),
            "other variables are changed by every batch at once, also by one that turns out too "
            "stale, unless --share names them",
        ),
        (
            sorted(written[False]),
            "other variables are changed by every batch at once, also by one that turns out too "
            "stale, in a way that --share does not know",
        ),
        (
            sorted(found.summed),
            "other variables are changed by every batch at once, also by one that turns out too "
            "stale, and its gradients are made of them",
        ),
        (found.at_once, "variables are trained at once by each worker, as the policy says"),
        (found.unrelated, "variables are trained by another train op: asynchronous as before"),
        (found.untrained, "trainable variables have no gradient"),
    ]
    for names, what in kinds:
        if names:
            yield "{} {} ({})".format(len(names), what, _some(names))


def _some(names):
    """A list that may be long, in words."""
    more = len(names) - _NAMED
    shown = ", ".join(names[:_NAMED])
    return "{} and {} more".format(shown, more) if more > 0 else shown or "none"
