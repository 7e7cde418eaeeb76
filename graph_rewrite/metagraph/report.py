"""What a rewrite found, changed and left alone; for people, and as JSON for programs."""

import collections
from typing import Dict, Set

from graph_rewrite.metagraph.placement import UNPLACED
from graph_rewrite.metagraph.wording import alike, some
from graph_rewrite.metagraph.wording import batch_norms as counted
from graph_rewrite.training.global_step import COUNTED, MADE
from graph_rewrite.training.places import gradients

SCHEMA = "semisync.rewrite/1"

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
      fed: names of the hyperparameters that a job may feed; they go with each batch.
      warnings: sentences on what will not train as meant, unless something is done.
    """

    def __init__(self, nodes, settings):
        self.nodes = nodes
        self.settings = settings
        self.trained, self.chiefs, self.stand_ins, self.moved = [], [], [], []
        self.fed = []
        self.added = 0
        self.changes, self.left, self.warnings = [], [], []

    def places(self, placed, unplaced):
        """Says where the ops of a graph without devices go.

        Args:
          placed: see `placement.place`; empty where nothing was placed.
          unplaced: whether no op has a device.
        """
        if placed:
            counts = ["{} on {}".format(count, server) for server, count in placed.items()]
            self.changes.append(
                "variables and tables without a device are on the parameter servers in turn ({}), "
                "their slots beside them; all else without one is on the workers".format(
                    some(counts)
                )
            )
        if unplaced:
            self.warnings.append(UNPLACED)

    def train_ops(self, names):
        """Says what becomes of train ops that are taken together."""
        if len(names) > 1:
            self.warnings.append(
                "{} train together, each of them all {} variables: fetch them in one run, since "
                "every run is a batch".format(" and ".join(names), len(self.trained))
            )

    def hyperparameters(self, found, fixed):
        """Says which hyperparameters a job may feed.

        Args:
          found: the `TrainingGraph`.
          fixed: {name: number} of those that it may not feed any more.
        """
        self.fed = list(found.hyperparameters)
        for name, value in sorted(fixed.items()):
            self.changes.append("{} is {:g} for good: to feed it is refused".format(name, value))

    def global_step(self, step, elsewhere, has_saver):
        """Says what became of a `GlobalStep`.

        Args:
          elsewhere: names of other ops that count it.
          has_saver: whether the graph brings a saver.
        """
        name = step.variable.op.name
        if step.origin == COUNTED:
            self.changes.append(
                "the global step is {}, since training counts it and no other whole number: name "
                "another with --global-step".format(name)
            )
        elif step.origin == MADE:
            runs = "from 0 in every run, since the saver does not know it"
            old = "which no earlier checkpoint has"
            self.changes.append(
                "the global step {} is new: the chief counts it, {}".format(
                    name, runs if has_saver else old
                )
            )
        elif not step.counts:
            self.changes.append("the chief counts the global step {}, now".format(name))
        if elsewhere:
            self.warnings.append(
                "{} counts the global step {} too, which the chief counts now: fetch it no "
                "more".format(some(elsewhere), name)
            )

    def update_ops(self, found, before, after):
        """Says what became of the collection UPDATE_OPS.

        Args:
          found: the `TrainingGraph`.
          before, after: the names of its ops, lists.
        """
        taken = [name for name in before if name not in after]
        if taken:
            self.changes.append(
                "{} of {} ops were taken out of UPDATE_OPS, since the chief does what they "
                "did: {}".format(len(taken), len(before), some(taken))
            )
        starts = gradients(found.updates) + found.waited_for + found.part.left
        trained = found.nodes.ancestors(starts)
        kinds = [
            ("each worker still runs with every batch", trained - found.part.needs),
            ("the chief runs once a global step", found.part.needs),
            ("run where they are fetched", set(after) - trained - found.part.needs),
        ]
        for what, names in kinds:
            stay = [name for name in after if name in names]
            if stay:
                self.left.append(
                    "{} ops of UPDATE_OPS, which {} ({})".format(len(stay), what, some(stay))
                )

    def batch_norms(self, found):
        """Says what became of the moving statistics of BatchNorms, a list."""
        shared = [each.name for each in found if each.shareable]
        if shared:
            self.changes.append(
                "the moving statistics of {} share the fate of their batch: {}".format(
                    counted(shared), some(shared)
                )
            )
        for names, sentence in alike(each for each in found if not each.shareable):
            self.left.append("{}: {} ({})".format(counted(names), sentence, some(names)))
        for names, sentence in alike(each for each in found if each.shareable):
            self.changes.append(
                "{}, as exported: {}; the chief makes the updates now, so fetch them by name no "
                "more ({})".format(counted(names), sentence, some(names))
            )

    def shared_updates(self, found):
        """Says which other updates share the fate of their batch, a list of `Shared`."""
        if found:
            self.changes.append(
                "{} updates of variables share the fate of their batch: {}".format(
                    len(found), some(["{} ({})".format(each.op, each.how) for each in found])
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
        lines.append("chief    runs once a global step: " + some(self.chiefs))
        lines.append("trains   as before, by its name: " + some(self.stand_ins))
        if self.fed:
            lines.append("fed      may be, and goes with each batch: " + some(self.fed))
        if self.moved:
            lines.append("waits    for every batch, and no longer the chief: " + some(self.moved))
        lines.append("added    {} ops".format(self.added))
        lines += ["changed  " + sentence for sentence in self.changes]
        lines += ["left     " + sentence for sentence in self.left]
        lines += ["warning  " + sentence for sentence in self.warnings]
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
            yield "{} {} ({})".format(len(names), what, some(names))
