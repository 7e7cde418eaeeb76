"""The parts of a training graph: its updates, the chief's part, its global step, its devices.

A graph that cannot be rewritten is refused here, in one sentence that says why.
"""

import collections
from typing import List, NamedTuple, Set

from graph_rewrite.edit import devices
from graph_rewrite.graph.meta_graph import collected, imported, variables
from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.op_traits import OpTraits
from graph_rewrite.graph.ops import VARIABLES
from graph_rewrite.training import global_step as steps
from graph_rewrite.training.chief_part import split_off
from graph_rewrite.training.existing import ExistingVariable
from graph_rewrite.training.gradient_inputs import find_trained, gradients
from graph_rewrite.training.hyperparameters import find_fed, find_rates
from graph_rewrite.training.sync_replicas import SyncReplicas
from semisync.common.compat import tf
from semisync.common.errors import BadInput


class TrainingGraph:
    """The analysis of one MetaGraphDef.

    Args:
        meta: the MetaGraphDef; not changed, but its NodeDefs are those of `nodes`.
        train_ops: names of the ops by which training ends, a list; none to find them in the graph.
        keep_devices, global_step: see `semi_synchronize`.
        mode_of: function (gradient, variable) -> "semi-sync" or "async".
        fixed: names of the hyperparameters that are fixed, a set.

    Attributes:
        graph: the MetaGraphDef as a tf.Graph, on which the library builds.
        nodes, traits: `Nodes` and `OpTraits` of the MetaGraphDef.
        exporter: the `devices.Exporter`.
        sync: its `SyncReplicas`.
        trained: list of `TrainedVariable`, with the gradients of the batch.
        asynchronous: list of `TrainedVariable` that each worker trains at once, as before.
        unrelated: names of variables that another train op trains.
        untrained: names of trainable variables that nothing trains.
        chief: the `ChiefPart`.
        hyperparameters: names of the ops whose values the chief's part takes from the batches.
        unfed: names of the tensors that the chief's part is computed from and that no batch brings,
            a list.
        waited_for: names of ops that the worker's train op waits for.
        written_by_batches: {op: variable}, names, of the other writes of every batch to variables
            that all workers share.
        summed: names of those of these variables from which a batch computes gradients after it has
            written them, such as a sum of gradients; a set.
        stand_ins: names of ops that are fetched as before, and then train semi-synchronously.
        global_step: the `GlobalStep`.
        counted_elsewhere: names of the ops that count it, which nothing that trains needs.

    Raises:
        BadInput: the graph does not train, or not in a way that can be made semi-synchronous.
    """

    def __init__(self, meta, train_ops, keep_devices, mode_of, global_step, fixed=frozenset()):
        self.nodes = nodes = Nodes.of(meta)
        trainable = list(variables(meta, tf.GraphKeys.TRAINABLE_VARIABLES))
        self._refuse_broken(meta.graph_def, trainable)
        self.traits = traits = OpTraits(nodes, meta.graph_def.library)
        servers = [nodes[name].device for name in trainable]
        self.exporter = devices.find_exporter(meta.graph_def, servers, keep_devices)
        self.sync = SyncReplicas(nodes, traits)
        # Before the flow of a batch is followed: these values go with the batches, and bring none.
        traits.carried.update(find_fed(nodes, traits, trainable))
        every = find_trained(nodes, traits, trainable)
        own = self._trained_by(train_ops, every)
        names = {trained.node.name for trained in own}.union(self.unrelated)
        self.untrained = [name for name in trainable if name not in names]
        counters = steps.counters(meta, nodes, traits)
        if global_step is not None:
            steps.check_named(global_step, meta, nodes, counters)
        self.graph = imported(meta)
        self._divide(own, mode_of)
        self.chief = split_off(nodes, traits, self.trained, self.sync, collected(meta), train_ops)
        fed = traits.carried.union(find_rates(nodes, traits)).intersection(self.chief.needs)
        self.hyperparameters = nodes.ordered(fed.difference(fixed))
        self.unfed = self._unfed()
        self.waited_for = self.chief.moved + self.sync.waited_for
        self.written_by_batches = self._written_by_batches(meta, every)
        self.summed = self._summed()
        self.stand_ins = self.chief.fetched + self.sync.train_ops
        self._refuse_gradients_after_training()
        if len(train_ops) < 2:  # several that were asked for train together, related or not
            self._refuse_several_ways()
        self.global_step = steps.find(self.graph, global_step, counters, self.chief, traits)
        self.counted_elsewhere = self._counted_elsewhere(counters)

    def _refuse_broken(self, graph_def, trainable):
        """Raises BadInput if an op or a variable is missing, or two ops have one name."""
        # Before any walk, which looks nodes up by their names.
        for name in self.nodes.missing():
            raise BadInput("the graph has no op {!r}, which others need".format(name))
        for name in trainable:
            if name not in self.nodes:
                raise BadInput("the graph has no variable {!r}, which it collects".format(name))
        if len(self.nodes) != len(graph_def.node):  # of one name the index keeps one
            names = collections.Counter(node.name for node in graph_def.node)
            raise BadInput("the graph has two ops {!r}".format(names.most_common(1)[0][0]))

    def _trained_by(self, train_ops, every):
        """The `TrainedVariable`s that are trained before some ops; fills `unrelated`."""
        self.unrelated: List[str] = []
        if not every:
            raise BadInput(
                "no op of the graph trains a variable outside of functions: give the MetaGraph of "
                "the training job, not a frozen or an inference graph"
            )
        if not train_ops:
            return every
        inputs = set()
        for name in train_ops:
            if name not in self.nodes:
                raise BadInput("the graph has no op {!r} to end the training with".format(name))
            above = self.nodes.ancestors([name])
            own = {taken for variable in every for taken in variable.inputs if taken.node in above}
            if not own:
                raise BadInput("the op {!r} trains no variable".format(name))
            inputs |= own
        ended = [trained for trained in every if inputs.intersection(trained.inputs)]
        ops = {trained.ops[0] for trained in ended}  # of no other variable
        self.unrelated = [variable.node.name for variable in every if variable.ops[0] not in ops]
        return ended

    def _divide(self, own, mode_of):
        """Fills `trained` and `asynchronous`; raises BadInput if the ops cannot train so."""
        self.trained, self.asynchronous = [], []
        for trained in map(self.sync.own, own):
            variable = ExistingVariable(self.graph, trained)
            if mode_of(variable.gradient(), variable) == "semi-sync":
                self.trained.append(trained)
            else:
                self.asynchronous.append(trained)
        if not self.trained:
            raise BadInput(
                'the policy makes every variable "async", as they are in the graph: there is '
                "nothing to rewrite"
            )
        if self.asynchronous and self.sync.unused:
            raise BadInput(
                "{} is to be trained at once, and the graph has a SyncReplicasOptimizer, whose "
                "ops train once per global step: export the job without it".format(
                    self.asynchronous[0].node.name
                )
            )

    def _unfed(self):
        own = self.chief.needs.difference(self.chief.ops, self.hyperparameters)
        made = [node for node in self.nodes if node.name in own and node.op not in VARIABLES]
        return [node.name + ":0" for node in made if self.traits.output_types(node)]

    def _written_by_batches(self, meta, every):
        """See the attribute; `every` is all that is trained, whose slots do not count."""
        training = {op for trained in every for op in trained.ops}
        slots = {self.traits.written(op) for op in training}
        slots -= {trained.node.name for trained in every}
        shared = set(variables(meta)) - slots
        others = self.chief.needs | self.sync.unused | training
        starts = gradients(self.trained) + self.waited_for + self.chief.left
        above = self.nodes.ancestors(starts, without=others)
        written = {name: self.traits.written(name) for name in above}
        return {name: variable for name, variable in written.items() if variable in shared}

    def _summed(self):
        starts = gradients(self.trained)
        before = self.nodes.ancestors(starts) & self.written_by_batches.keys()
        read = self.nodes.reachable(starts, self.nodes.makers) if before else set()
        return {self.written_by_batches[op] for op in before} & read

    def _refuse_gradients_after_training(self):
        after = self.nodes.ancestors(gradients(self.trained)) & self.chief.ops
        if after:
            raise BadInput(
                "some gradients are computed after {} has applied others: these two steps cannot "
                "be one global step".format(self.nodes.ordered(after)[0])
            )

    def _refuse_several_ways(self):
        """Raises BadInput if the ends of the training have no variable in common."""
        takers = {taken.node for trained in self.trained for taken in trained.inputs}
        ways: List[_Way] = []
        for name in self.chief.last:
            above = self.nodes.reachable([name], self._chiefs_above) & takers
            # Each end merges all earlier ways that share a variable with it.
            common = [way for way in ways if way.takers & above]
            ways = [way for way in ways if way not in common]
            ends = [end for way in common for end in way.ends] + [name]
            ways.append(_Way(ends, above.union(*[way.takers for way in common])))
        if len(ways) > 1:
            raise BadInput(
                "the graph trains in {} ways that have nothing in common: name one of {} as the "
                "train op, or several that are to train together".format(
                    len(ways), ", ".join(way.ends[0] for way in ways)
                )
            )

    def _chiefs_above(self, node):
        makers = self.nodes.makers(node)
        makers += self.chief.edges.get(node.name, self.nodes.control_inputs(node))
        return [maker for maker in makers if maker in self.chief.ops]

    def _counted_elsewhere(self, counters):
        """See the attribute; raises BadInput if every batch counts the global step."""
        step = self.global_step
        if step.counts or step.variable is None:
            return []
        name = step.variable.op.name
        for op, variable in self.written_by_batches.items():
            if variable == name:
                raise BadInput(
                    "every batch counts the global step {} by {}, before it is trained on: pass "
                    "global_step={} to minimize or apply_gradients instead, and export "
                    "again".format(name, op, name)
                )
        return counters.get(name, [])


class _Way(NamedTuple):
    """Ops by which training ends, and the ops above them that take gradients."""

    ends: List[str]
    takers: Set[str]
