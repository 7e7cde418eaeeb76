"""What a training graph is made of: its updates, the chief's part, its global step, its devices.

A graph that cannot be rewritten is refused here, in one sentence that says why.
"""

import collections
from typing import Any, List

from graph_rewrite.edit import devices, editor
from graph_rewrite.edit.excerpt import Wanted, excerpt, variables
from graph_rewrite.graph.index import Nodes
from graph_rewrite.graph.op_traits import OpKinds
from graph_rewrite.graph.passthrough import VARIABLES
from graph_rewrite.training import global_step as steps
from graph_rewrite.training.chief_part import split_off
from graph_rewrite.training.existing import TrainedVariable
from graph_rewrite.training.hyperparameters import find_fed, find_rates
from graph_rewrite.training.places import gradients
from graph_rewrite.training.sync_replicas import SyncReplicas
from graph_rewrite.training.train_ops import TrainingOps
from semisync.common.compat import tf
from semisync.common.errors import BadInput


class TrainingGraph:
    """The analysis of one MetaGraphDef.

    Args:
      meta: the MetaGraphDef; not changed, but its NodeDefs are those of `nodes`.
      wanted: what `graph` is to hold besides what is trained, a list of `Wanted`.
      train_ops: names of the ops by which training ends, a list; none where the graph tells.
      keep_devices, global_step: see `semi_synchronize`.
      mode_of: function (gradient, variable) -> "semi-sync" or "async".

    Attributes:
      graph: a tf.Graph, the `excerpt` of what the library builds on.
      nodes, kinds: `Nodes` and `OpKinds` of the MetaGraphDef.
      worker: the `devices.Worker` that exported it.
      sync: its `SyncReplicas`.
      updates: list of `Update`, with the gradients of the batch.
      at_once: names of variables that each worker trains at once, as before.
      unrelated: names of variables that another train op trains.
      untrained: names of trainable variables that nothing trains.
      part: the `ChiefPart`.
      hyperparameters: names of the ops whose values the chief's part takes from the batches.
      unfed: names of the tensors that the chief's part is made of and no batch brings; a list.
      waited_for: names of ops that the worker's train op waits for.
      each_batch: {op: variable}, names, of what else every batch writes that all workers share.
      summed: names of those of these variables that a batch writes before its gradients are made of
        them, such as a sum of gradients; a set.
      stand_ins: names of ops that are fetched as before, and then train semi-synchronously.
      global_step: the `GlobalStep`.
      counted_elsewhere: names of the ops that count it, which nothing that trains needs.

    Raises:
      BadInput: the graph does not train, or not in a way that can be made semi-synchronous.
    """

    def __init__(self, meta, wanted, train_ops, keep_devices, mode_of, global_step, fixed=()):
        self.nodes = nodes = Nodes.of(meta)
        trainable = list(variables(meta, tf.GraphKeys.TRAINABLE_VARIABLES))
        self._refuse_broken(meta.graph_def, trainable)
        servers = [nodes[name].device for name in trainable]
        self.worker = devices.find_worker(meta.graph_def, servers, keep_devices)
        self.kinds = OpKinds(nodes, meta.graph_def.library)
        self.sync = SyncReplicas(nodes, self.kinds)
        self.kinds.carried.update(find_fed(nodes, self.kinds, trainable))
        fed = self.kinds.carried.union(find_rates(nodes, self.kinds)).difference(fixed)
        brought = [node.name for node in nodes if node.name in fed]
        updates = TrainingOps(nodes, self.kinds, trainable).updates
        self.unrelated: List[str] = []
        if train_ops:
            updates = self._of(train_ops, updates)
        if not updates:
            raise BadInput(
                "no op of the graph trains a variable outside of functions: give the MetaGraph of "
                "the training job, not a frozen or an inference graph"
            )
        trained = {update.variable.name for update in updates}.union(self.unrelated)
        self.untrained = [name for name in trainable if name not in trained]
        own = [self.sync.own(update) for update in updates]
        counters = steps.counters(meta, nodes, self.kinds)
        if global_step is not None:
            steps.check_named(global_step, meta, nodes, counters)
        candidates = steps.candidates(meta, global_step, counters)
        trained_with = gradients(own) + [u.variable.name for u in own] + brought
        built_on = Wanted(trained_with, [], candidates)
        self.graph = excerpt(meta, nodes, self.kinds, wanted + [built_on])
        modes = [self._mode(update, mode_of) for update in own]
        self.updates = [update for update, mode in zip(own, modes) if mode == "semi-sync"]
        self.at_once = [u.variable.name for u, mode in zip(own, modes) if mode == "async"]
        self._refuse_at_once()
        collected = editor.collected(meta)
        self.part = split_off(nodes, self.kinds, self.updates, self.sync, collected, train_ops)
        self.hyperparameters = [name for name in brought if name in self.part.needs]
        self.unfed = self._unfed()
        self.waited_for = self.part.moved + self.sync.waited_for
        self.each_batch = self._written_by_each_batch(meta, updates)
        self.summed = self._summed()
        self.stand_ins = self.part.fetched + self.sync.train_ops
        self._refuse_gradients_after_training()
        if len(train_ops) < 2:
            self._refuse_several_ways()
        self.global_step = steps.global_step(
            self.graph, global_step, counters, self.part, self.kinds
        )
        self.counted_elsewhere = self._counted_elsewhere(counters)

    def _unfed(self):
        own = self.part.needs.difference(self.part.ops, self.hyperparameters)
        made = [node for node in self.nodes if node.name in own and node.op not in VARIABLES]
        return [node.name + ":0" for node in made if self.kinds.output_types(node)]

    def _refuse_broken(self, graph_def, trainable):
        """Raises BadInput where an op or a variable is missing, or two ops have one name."""
        for name in self.nodes.missing():
            raise BadInput("the graph has no op {!r}, which others need".format(name))
        for name in trainable:
            if name not in self.nodes:
                raise BadInput("the graph has no variable {!r}, which it collects".format(name))
        if len(self.nodes) != len(graph_def.node):
            names = collections.Counter(node.name for node in graph_def.node)
            raise BadInput("the graph has two ops {!r}".format(names.most_common(1)[0][0]))

    def _of(self, train_ops, updates):
        trained = set()  # places
        for name in train_ops:
            if name not in self.nodes:
                raise BadInput("the graph has no op {!r} to end the training with".format(name))
            above = self.nodes.ancestors([name])
            own = {place for u in updates for place in u.places if place.node in above}
            if not own:
                raise BadInput("the op {!r} trains no variable".format(name))
            trained |= own
        found = [update for update in updates if trained.intersection(update.places)]
        ops = {update.ops[0] for update in found}  # of no other update
        self.unrelated = [u.variable.name for u in updates if u.ops[0] not in ops]
        return found

    def _mode(self, update, mode_of):
        variable = TrainedVariable(self.graph, update)
        return mode_of(variable.gradient(), variable)

    def _refuse_at_once(self):
        """Raises BadInput where the ops as they are cannot train what is to be "async"."""
        if not self.updates:
            raise BadInput(
                'the policy makes every variable "async", as they are in the graph: nothing is '
                "to be rewritten"
            )
        if self.at_once and self.sync.unused:
            raise BadInput(
                "{} is to be trained at once, and the graph has a SyncReplicasOptimizer, whose "
                "ops train once a global step: export the job without it".format(self.at_once[0])
            )

    def _refuse_several_ways(self):
        """Raises BadInput where the ends of the training have no update in common."""
        placed = {place.node for update in self.updates for place in update.places}
        ways: List[Any] = []  # (names of ends, places above them)
        for name in self.part.last:
            above = self.nodes.reachable([name], self._chiefs_above) & placed
            common = [way for way in ways if way[1] & above]
            ways = [way for way in ways if way not in common]
            ways.append(
                (
                    [end for way in common for end in way[0]] + [name],
                    above.union(*[way[1] for way in common]),
                )
            )
        if len(ways) > 1:
            raise BadInput(
                "the graph trains in {} ways that have nothing in common: name one of {} as the "
                "train op, or several that are to train together".format(
                    len(ways), ", ".join(way[0][0] for way in ways)
                )
            )

    def _chiefs_above(self, node):
        makers = self.nodes.makers(node)
        makers += self.part.edges.get(node.name, self.nodes.control_inputs(node))
        return [maker for maker in makers if maker in self.part.ops]

    def _written_by_each_batch(self, meta, updates):
        """See `each_batch`; `updates` are what trains, whose slots are no other variables."""
        training = {op for update in updates for op in update.ops}
        slots = {self.kinds.written(op) for op in training} - {u.variable.name for u in updates}
        shared = set(variables(meta, tf.GraphKeys.GLOBAL_VARIABLES)) - slots
        others = self.part.needs | self.sync.unused | training
        found = {}
        starts = gradients(self.updates) + self.waited_for + self.part.left
        for name in self.nodes.ancestors(starts, without=others):
            variable = self.kinds.written(name)
            if variable in shared:
                found[name] = variable
        return found

    def _summed(self):
        starts = gradients(self.updates)
        before = self.nodes.ancestors(starts) & self.each_batch.keys()
        read = self.nodes.reachable(starts, self.nodes.makers) if before else set()
        return {self.each_batch[op] for op in before} & read

    def _refuse_gradients_after_training(self):
        found = self.nodes.ancestors(gradients(self.updates)) & self.part.ops
        if found:
            raise BadInput(
                "some gradients are computed after {} has applied others: these two steps cannot "
                "be one global step".format(self.nodes.ordered(found)[0])
            )

    def _counted_elsewhere(self, counters):
        """See the attribute; raises BadInput where every batch counts the global step."""
        step = self.global_step
        if step.counts or step.variable is None:
            return []
        name = step.variable.op.name
        for op, variable in self.each_batch.items():
            if variable == name:
                raise BadInput(
                    "every batch counts the global step {} by {}, before it is trained on: pass "
                    "global_step={} to minimize or apply_gradients instead, and export "
                    "again".format(name, op, name)
                )
        return counters.get(name, [])
