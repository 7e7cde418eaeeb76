"""Refuses graphs that train by an unknown rule, and names the op that does.

An Optimizer builds the update of a variable in a name scope of its own, "update_" + VARIABLE. One
that computes with the gradient there, before it applies it, such as LARS with its ratio of norms,
would do so with the gradient of each batch instead of the global batch's.
"""

import re

from graph_rewrite.graph.ops import TRAINING_OP, VARIABLES
from semisync.common.errors import BadInput
from semisync.common.tensor_names import split

_SCOPE = "update_"  # before the name of the variable


def check_steps(flow, others, steps):
    """The plain steps that train a variable by themselves, a list.

    Another op by which an optimizer of `others` changes its variable, such as a constraint, is not
    one.

    Args:
        flow: the `BatchFlow`.
        others, steps: lists of `TrainedVariable`.

    Raises:
        BadInput: an optimizer computes with the batch's gradient before it applies it, or the
            gradient may not reach its variable.
    """
    scopes = _scopes(others)
    steps = [step for step in steps if _made_in(step) not in scopes]
    _refuse_conditional(flow, {name for trained in others + steps for name in trained.ops})
    for trained in others + steps:
        if _made_in(trained):
            _refuse_computing(flow, trained.ops[0])
    _refuse_slots(flow, steps)
    return steps


def check(flow, trained):
    """Raises BadInput if a variable is trained in an unknown way.

    Args:
        flow: the `BatchFlow`.
        trained: every `TrainedVariable`.
    """
    claimed = {name for variable in trained for name in variable.ops}
    replacing = [name for name in flow.written if name not in claimed and flow.replaces(name)]
    scopes = _scopes(trained)
    for name in replacing:
        scope = _scope(name, flow.written[name])
        if scope and scope not in scopes and flow.nodes[name].input[1].startswith(scope):
            _refuse_computing(flow, name)
    _refuse_made_of_itself(flow, trained, replacing)


def _scope(op, variable):
    """The name scope of an op in which an Optimizer updates a variable, or None."""
    # TensorFlow numbers a name scope that is opened again: "update_w_1".
    scope = re.match(r"(.*/)?{}(_\d+)?/".format(re.escape(_SCOPE + variable)), op)
    return scope.group() if scope else None


def _scopes(trained):
    """The scopes in which Optimizers update a list of `TrainedVariable`, a set."""
    scopes = {_scope(op, variable.node.name) for variable in trained for op in variable.ops}
    return scopes - {None}


def _made_in(trained):
    """The scope within which the gradient of a `TrainedVariable` is made, or None."""
    if _SCOPE + trained.node.name not in trained.values:  # most are made elsewhere
        return None
    scope = _scope(trained.ops[0], trained.node.name)
    return scope if scope and trained.values.startswith(scope) else None


def _refuse_computing(flow, name):
    raise BadInput(
        "the op {} ({}) trains {} by what its optimizer computes with the gradient before it "
        "applies it, which must be the global batch's: wrap the optimizer in the job's code "
        "instead, by semisync.GlobalBatchOptimizer".format(
            name, flow.nodes[name].op, flow.written[name]
        )
    )


def _refuse_slots(flow, steps):
    """Refuses steps that depend on a slot of the trained variable: these take no plain gradient."""
    if not steps:
        return
    above = flow.nodes.reachable([split(step.values)[0] for step in steps], flow.nodes.makers)
    changed = sorted(flow.changed_variables() & above - flow.trainable)
    slots = [name for name in changed if flow.nodes[name].op in VARIABLES]
    for step in steps:
        shape = step.node.attr["shape"]
        alike = [name for name in slots if flow.nodes[name].attr["shape"] == shape]
        if not alike:
            continue  # most have none: searching above every one of many steps would take long
        above = flow.nodes.reachable([split(step.values)[0]], flow.nodes.makers)
        for name in [name for name in alike if name in above]:
            raise BadInput(
                "the op {} trains {} by a rule that is not known, with {}: wrap the optimizer in "
                "the job's code instead, by semisync.GlobalBatchOptimizer".format(
                    step.ops[0], step.node.name, name
                )
            )


def _refuse_conditional(flow, claimed):
    inside = [name for name in claimed if flow.traits.is_conditional(flow.nodes[name])]
    calls = [node for node in flow.nodes if not TRAINING_OP.match(node.op)]
    inside += [node.name for node in calls if flow.traits.trains(node)]
    if inside:
        raise BadInput(
            "the op {} trains inside a tf.cond, a loop or a function: take the gradients out "
            "of it and export again".format(flow.nodes.ordered(inside)[0])
        )


def _refuse_made_of_itself(flow, trained, replacing):
    """Raises BadInput if a trainable variable gets a value computed from itself and a batch.

    A trained one may be read and changed again: by a constraint, or a decay.
    """
    made = [name for name in replacing if _is_made_of_itself(flow, name)]
    inputs = {(taken.node, taken.number) for variable in trained for taken in variable.inputs}
    reached = flow.traits.flow(flow.sources, inputs) if made else set()
    for node in [flow.nodes[name] for name in made]:
        if not reached.isdisjoint(flow.nodes.makers(node)):
            raise BadInput(
                "the op {} of type {} makes the trainable variable {} of itself and a batch, by a "
                "rule that is not known: wrap the optimizer in the job's code instead, by "
                "semisync.GlobalBatchOptimizer".format(node.name, node.op, flow.written[node.name])
            )


def _is_made_of_itself(flow, name):
    makers = flow.nodes.makers(flow.nodes[name])
    return flow.written[name] in flow.nodes.reachable(makers[1:], flow.nodes.makers)
