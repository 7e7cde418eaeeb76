"""Checks of the arguments of `GlobalBatchOptimizer`; each mistake is one sentence."""

import inspect
import numbers
import os
import re

import numpy as np

from semisync import pacing
from semisync.common.compat import tf
from semisync.common.errors import UsageError

MODES = ("semi-sync", "async")

# What jobs ask of SyncReplicasOptimizer, and GlobalBatchOptimizer does by its hook.
_OF_SYNC_REPLICAS = (
    "chief_init_op",
    "get_chief_queue_runner",
    "get_init_tokens_op",
    "local_step_init_op",
    "ready_for_local_init_op",
)

# Of tf.contrib.opt; they aggregate the copies that workers have trained.
_OF_COPIES = ("AGNOptimizer", "ElasticAverageOptimizer", "ModelAverageOptimizer")


def graph_mode():
    """Raises UsageError if no train op for a session of a cluster can be built."""
    if tf.executing_eagerly():
        raise UsageError(
            "GlobalBatchOptimizer trains a graph in sessions, and this process executes eagerly: "
            "call tf.compat.v1.disable_v2_behavior() first, or build within tf.Graph().as_default()"
        )
    if tf.distribute.has_strategy():
        raise UsageError(
            "GlobalBatchOptimizer aggregates between the workers itself: build the train op "
            "outside of {}.scope()".format(type(tf.distribute.get_strategy()).__name__)
        )
    # Only a FuncGraph has one: the graph of a tf.function, or of a branch, whose type differs.
    if not hasattr(tf.get_default_graph(), "outer_graph"):
        return
    if type(tf.get_default_graph()).__name__ == "FuncGraph":
        raise UsageError(
            "GlobalBatchOptimizer is called inside a tf.function: build the train op in the graph "
            "of the session, without tf.function"
        )
    raise UsageError(
        "apply_gradients is called inside a branch, as MixedPrecisionLossScaleOptimizer does: wrap "
        "that optimizer with GlobalBatchOptimizer, not the other way round"
    )


def plain_optimizer(optimizer, wrappers):
    """`optimizer`, which is a tf.compat.v1 optimizer and of none of the classes `wrappers`."""
    name = type(optimizer).__name__
    if isinstance(optimizer, type):
        raise UsageError(
            "GlobalBatchOptimizer wraps an optimizer, and {0} is a class: pass {0}(...)".format(
                optimizer.__name__
            )
        )
    if not isinstance(optimizer, tf.train.Optimizer):
        raise UsageError(
            "GlobalBatchOptimizer wraps a tf.compat.v1.train.Optimizer, not {!r}{}".format(
                name,
                ": take that of the same name from tf.compat.v1.train"
                if "keras" in type(optimizer).__module__
                else "",
            )
        )
    if isinstance(optimizer, wrappers):
        raise UsageError("{} aggregates already: wrap the optimizer inside it".format(name))
    if name in _OF_COPIES:
        raise UsageError(
            "{} has each worker train a copy of the variables: wrap the optimizer inside it, and "
            "leave out its custom getter and its hook".format(name)
        )
    return optimizer


def of_minimize(args, kwargs):
    """The arguments of `minimize` for `compute_gradients` and for `apply_gradients`, two dicts."""
    known = inspect.signature(tf.train.Optimizer.minimize).parameters
    more = {name: value for name, value in kwargs.items() if name not in known}
    own = {name: value for name, value in kwargs.items() if name in known}
    given = inspect.signature(tf.train.Optimizer.minimize).bind(None, *args, **own).arguments
    del given["self"]
    more.update((name, given.pop(name)) for name in ("global_step", "name") if name in given)
    return given, more


def of_apply_gradients(optimizer, more):
    """Raises UsageError if `optimizer.apply_gradients` does not take further arguments `more`."""
    parameters = inspect.signature(optimizer.apply_gradients).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return
    unknown = sorted(set(more) - {one.name for one in parameters})
    if unknown:
        raise UsageError(
            "{} is given {}, which its apply_gradients does not take: GlobalBatchOptimizer calls "
            "that, and not its minimize".format(type(optimizer).__name__, ", ".join(unknown))
        )


def gradients(grads_and_vars):
    """The (gradient, variable) that have one, a tensor or tf.IndexedSlices of this process's batch.

    Raises:
        UsageError: there is none, one is not of a batch, or a variable is a local one or has no
            known shape.
    """
    if tf.get_default_graph().finalized:
        raise UsageError(
            "the graph is finalized: call minimize or apply_gradients before the session is made"
        )
    pairs = [
        (tf.convert_to_tensor_or_indexed_slices(gradient), variable)
        for gradient, variable in grads_and_vars
        if gradient is not None
    ]
    if not pairs:
        raise UsageError("no variable has a gradient: check the loss and the var_list")
    own, shared = {v.op for v in tf.local_variables()}, set(_variable_ops())
    for gradient, variable in pairs:
        if getattr(gradient, "values", gradient).op.type.endswith("AccumulatorTakeGradient"):
            raise UsageError(
                "SyncReplicasOptimizer is around GlobalBatchOptimizer, which takes its place: "
                "leave SyncReplicasOptimizer out"
            )
        if variable.op in own - shared:
            raise UsageError(
                "the variable {} is trained and in the collection LOCAL_VARIABLES, of which every "
                "process has its own: make it a global variable, or leave it out of "
                "var_list".format(variable.op.name)
            )
        if not variable.shape.is_fully_defined():
            raise UsageError(
                "the variable {} has the shape {}: semi-synchronous training needs a variable of "
                "known shape".format(variable.op.name, variable.shape)
            )
    return pairs


def of_their_shapes(pairs):
    """The (gradient, variable), each dense gradient of the shape of its variable.

    Gradients are sent as vectors, which the variable's shape would take in any order.
    """
    checked = []
    for gradient, variable in pairs:
        if not isinstance(gradient, tf.IndexedSlices):
            if not gradient.shape.is_compatible_with(variable.shape):
                raise UsageError(
                    "the gradient of {} has the shape {}, and the variable {}: TensorFlow applies "
                    "none of another shape".format(variable.op.name, gradient.shape, variable.shape)
                )
            if not gradient.shape.is_fully_defined():
                gradient = tf.ensure_shape(gradient, variable.shape)
        checked.append((gradient, variable))
    return checked


def shared(variables, own, counted):
    """Raises UsageError if a variable is this process's own instead of the job's.

    Args:
        own: the device of this process.
        counted: that of the global step.
    """
    here = (_process(own), _process(""))  # where a session puts ops without a device
    for variable in variables:
        if _process(variable.device) in here and _process(variable.device) != _process(counted):
            raise UsageError(
                "{} is on {!r}, this worker's own place, and the global step on {!r}: every worker "
                "would train its own; put it on a parameter server, as replica_device_setter does, "
                "and a hash table by its devices".format(variable.op.name, variable.device, counted)
            )


def _process(device):
    spec = tf.DeviceSpec.from_string(device)
    return spec.job, spec.task


class NoSuchAttribute(UsageError, AttributeError):
    """An attribute of SyncReplicasOptimizer that GlobalBatchOptimizer has no use for."""


def no_attribute(name):
    """The error for an attribute that GlobalBatchOptimizer lacks."""
    if name not in _OF_SYNC_REPLICAS:
        return AttributeError("GlobalBatchOptimizer has no attribute {!r}".format(name))
    return NoSuchAttribute(
        "GlobalBatchOptimizer needs no {}: leave it out, pass hooks="
        "[opt.make_session_run_hook(is_chief)] to tf.train.MonitoredTrainingSession, which "
        "replaces tf.train.Supervisor (docs/jobs.md has a whole job)".format(name)
    )


def global_step(step):
    """`step`, a scalar integer variable."""
    variable = isinstance(step, tf.Variable) or getattr(step, "op", None) in _variable_ops()
    if not variable or not step.dtype.base_dtype.is_integer or step.shape.rank != 0:
        raise UsageError(
            "global_step is {!r}: pass tf.train.get_or_create_global_step(), an integer variable "
            "of shape []".format(step)
        )
    return step


def _variable_ops():
    return [variable.op for variable in tf.global_variables()]


def flag(name, meaning, value):
    """`value` as a bool."""
    number = isinstance(value, numbers.Integral) and value in (0, 1)  # as bool is, too
    if number or isinstance(value, np.bool_):
        return bool(value)
    raise UsageError("{} is {}, True or False, not {!r}".format(name, meaning, value))


def patience(value, least):
    """`value`, a number of seconds."""
    valid = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not valid or not least <= value < float("inf"):
        raise UsageError(
            "patience is a number of seconds, {:.0f} or more, since a sign of life may take one, "
            "not {!r}".format(least, value)
        )
    return float(value)


def count(name, meaning, number):
    """`number` as an int of 1 or more."""
    whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not whole or number < 1:
        raise UsageError(
            "{} is {}, a whole number of 1 or more, not {!r}".format(name, meaning, number)
        )
    return int(number)


def pace(paced, in_flight):
    """`paced` and `in_flight`, of which at most one is set; `MeanStaleness` is a kind of pace."""
    if in_flight is not None and paced:
        raise UsageError("paced hands out M tickets per global step: it has no use for in_flight")
    bound = pacing.by_staleness(in_flight)
    if bound is not None:
        return pacing.checked(bound), None
    if in_flight is not None:
        in_flight = count("in_flight", "the number of batches that may be in flight", in_flight)
    return pacing.checked(paced), in_flight


def averages(averages, variables):
    """`averages` and the `variables` that it averages, or None for each."""
    if averages is None and variables is not None:
        raise UsageError("variables_to_average are given, and no variable_averages to move")
    if averages is not None and not isinstance(averages, tf.train.ExponentialMovingAverage):
        raise UsageError(
            "variable_averages is a tf.train.ExponentialMovingAverage, not {!r}".format(averages)
        )
    return averages, variables


def choice(name, value, choices):
    """`value`, which is one of `choices`."""
    if value not in choices:
        raise UsageError("{} is {}, not {!r}".format(name, " or ".join(map(repr, choices)), value))
    return value


def staleness_policy(value):
    """`value`, which is None or a callable and not a class."""
    if value is not None and (not callable(value) or isinstance(value, type)):
        raise UsageError(
            "staleness is a policy such as semisync.Threshold(4) or a callable, not {!r}".format(
                value
            )
        )
    return value


def variable_policy(policy):
    """The function (gradient, variable) -> mode of a `policy`."""
    if policy is None:
        return lambda gradient, variable: "semi-sync"
    if callable(policy):
        return lambda gradient, variable: choice(
            "the policy of " + variable.op.name, policy(gradient, variable), MODES
        )
    return _Rules(policy)


class _Rules:
    """The mode of the first rule that finds a variable's name."""

    def __init__(self, policy):
        self._rules = rules("policy", policy, MODES)

    def __call__(self, gradient, variable):
        return self.of(variable.op.name)

    def of(self, name):
        """The mode of the variable `name`."""
        return next((mode for pattern, mode in self._rules if pattern.search(name)), "semi-sync")

    def idle(self, names):
        """The regexes that find none of `names`, a list."""
        patterns = [pattern for pattern, _ in self._rules]
        return [p.pattern for p in patterns if not any(map(p.search, names))]


def idle_rules(mode_of, names):
    """The regexes of a `variable_policy` that find none of the names of variables, a list."""
    return mode_of.idle(names) if isinstance(mode_of, _Rules) else []


def is_async(mode_of, name):
    """Whether a rule of a `variable_policy` leaves the variable of a name to each worker."""
    return isinstance(mode_of, _Rules) and mode_of.of(name) == "async"


def warn_of_idle_rules(mode_of, pairs):
    """Logs the `idle_rules` for the variables of (gradient, variable)."""
    names = [variable.op.name for _, variable in pairs]
    for pattern in idle_rules(mode_of, names):
        tf.logging.warning(
            "semisync: the policy's regex %r finds none of the %d variables that are trained, such "
            "as %s",
            pattern,
            len(names),
            names[0],
        )


def rules(name, entries, choices):
    """`entries`, a list of (regex, one of `choices`), with the regexes compiled."""
    entries = entries if isinstance(entries, (list, tuple)) else [entries]
    return [_rule(name, entry, choices) for entry in entries]


def _rule(name, entry, choices):
    try:
        pattern, chosen = entry
        return re.compile(pattern), choice("the {} of {}".format(name, pattern), chosen, choices)
    except (TypeError, ValueError, re.error) as error:
        raise UsageError(
            "{} is a list of (regex, {}), and {!r} is no such pair".format(
                name, " or ".join(map('"{}"'.format, choices)), entry
            )
        ) from error


def writable(path, what="the audit log"):
    """`path`, which a file can be appended to; its folder is made."""
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "a"):
            return path
    except OSError as error:
        raise UsageError(
            "{} {} cannot be written: {}".format(what, path, error.strerror)
        ) from error
