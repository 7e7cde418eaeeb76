"""What the arguments of `GlobalBatchOptimizer` must be; each mistake is one sentence."""

import numbers
import re

from semisync.compat import tf
from semisync.errors import UsageError

MODES = ("semi-sync", "async")


def plain_optimizer(optimizer, wrappers):
    """`optimizer`, which is a tf.compat.v1 optimizer and none of the classes `wrappers`."""
    name = type(optimizer).__name__
    if not isinstance(optimizer, tf.train.Optimizer):
        raise UsageError(
            "GlobalBatchOptimizer wraps a tf.compat.v1.train.Optimizer, not {!r}".format(name)
        )
    if isinstance(optimizer, wrappers):
        raise UsageError("{} aggregates already: wrap the optimizer inside it".format(name))
    return optimizer


def count(name, meaning, number):
    """`number` as an int of 1 or more."""
    whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not whole or number < 1:
        raise UsageError(
            "{} is {}, a whole number of 1 or more, not {!r}".format(name, meaning, number)
        )
    return int(number)


def pace(paced, in_flight):
    """`paced` and `in_flight`, of which one at most is set."""
    if in_flight is not None:
        in_flight = count("in_flight", "the number of batches that may be in flight", in_flight)
        if paced:
            raise UsageError(
                "paced=True hands out M tickets a global step: it has no use for in_flight"
            )
    return bool(paced), in_flight


def choice(name, value, choices):
    """`value`, which is one of `choices`."""
    if value not in choices:
        raise UsageError("{} is {}, not {!r}".format(name, " or ".join(map(repr, choices)), value))
    return value


def staleness_policy(policy):
    """`policy`, which is None or a callable."""
    if policy is not None and not callable(policy):
        raise UsageError(
            "staleness is a policy such as semisync.Threshold(4) or a callable, not {!r}".format(
                policy
            )
        )
    return policy


def variable_policy(policy):
    """The function (gradient, variable) -> mode that `policy` stands for."""
    if policy is None:
        return lambda gradient, variable: "semi-sync"
    if callable(policy):
        return lambda gradient, variable: choice(
            "the policy of " + variable.op.name, policy(gradient, variable), MODES
        )
    compiled = rules("policy", policy, MODES)

    def first_match(_, variable):
        found = (mode for pattern, mode in compiled if pattern.search(variable.op.name))
        return next(found, "semi-sync")

    return first_match


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


def writable(path):
    """`path`, which a file can be appended to."""
    try:
        with open(path, "a"):
            return path
    except OSError as error:
        raise UsageError(
            "the audit log {} cannot be written: {}".format(path, error.strerror)
        ) from error
