"""The options of `semisync simulate`, and the cluster and modes that they describe."""

import argparse
import contextlib
from typing import Any, Dict, Iterator

from semisync import pacing, staleness
from semisync.answers import add_json
from semisync.common import json_text
from semisync.common.errors import UsageError
from semisync.simulate import modes
from semisync.simulate.cluster import Cluster, Costs
from semisync.simulate.limits import OutOfRange, whole
from semisync.simulate.times import Times, read_traces

# The option of each number that the simulator may refuse, by the number's meaning.
_OPTION_OF = {
    "the number of workers": "--workers",
    "the number of parameter servers": "--servers",
    "the number of a parameter server's cores": "--cores",
    "the payload of a batch in bytes": "--payload",
    "the number of batches": "--steps",
    "the seed": "--seed",
    "the bound of SSP": "--bound",
    "in_flight": "--in-flight",
    "a batch's pause in seconds": "--pause",
    "a batch's demand in seconds": "--demand",
    "the spread of the log-normal factor": "--spread",
    "the share of slow batches": "--slow-batches",
    "the factor of slow batches": "--slow-batches",
    "the number of slow workers": "--slow-workers",
    "the factor of slow workers": "--slow-workers",
    "the time between two preemptions in seconds": "--preemption",
    "the time that a preempted worker is away in seconds": "--preemption",
    "the length of a day in seconds": "--day",
    "the factor of the day's load": "--day",
    "the cost pull in seconds": "--pull",
    "the cost push in seconds": "--push",
    "the cost apply in seconds": "--apply",
    "the cost apply_step in seconds": "--apply-step",
    "the cost latency in seconds": "--latency",
}
MODES = ("async", "native-sync", "backup", "ssp", "semi-sync", "sync")
MEAN_STALENESS = 1.5  # global steps, that --advise proposes at most
_BOUND = 4  # global steps
_IN_A_TRACE = ("demand", "pause", "spread", "slow_batches", "slow_workers")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options, in groups."""
    _add_modes(parser.add_argument_group("the job"))
    _add_times(parser.add_argument_group("how long batches take"))
    _add_costs(parser.add_argument_group("what everything else takes"))
    _add_answer(parser.add_argument_group("the answer"))


def _add_modes(group):
    add = group.add_argument
    add("--workers", type=int, required=True, metavar="N")
    add("--servers", type=int, default=1, metavar="P", help="parameter servers (default: 1)")
    add(
        "--batches-per-step",
        type=int,
        metavar="M",
        help="batches of a global step (default: one per worker; with --advise it is proposed)",
    )
    add("--bound", type=int, metavar="S", help="staleness bound (default: {})".format(_BOUND))
    add("--policy", help="a staleness policy instead, such as 'Polynomial(0.5)'")
    add("--on-stale", choices=("keep", "drop"), help="(default: keep)")
    rationed = group.add_mutually_exclusive_group().add_argument
    rationed("--in-flight", type=int, metavar="N", help="batches that may be out at once")
    rationed(
        "--mean-staleness",
        type=float,
        metavar="S",
        help="in_flight=MeanStaleness(S): batches are late by at most S steps on average",
    )
    add("--backup", type=int, metavar="N", help="backup workers of the mode backup (5 %%)")
    add(
        "--modes",
        nargs="+",
        choices=MODES,
        metavar="MODE",
        help="of {} (default: all)".format(", ".join(MODES)),
    )


def _add_times(group):
    add = group.add_argument
    computing = "computing a batch (default: {:g})".format(1e3 * Times().demand)
    add("--demand", type=float, metavar="MS", help=computing)
    add("--pause", type=float, metavar="MS", help="a batch's input, and the like (default: 0)")
    add("--spread", type=float, metavar="SIGMA", help="of the log-normal factor (default: 0)")
    add(
        "--slow-batches",
        type=_pair,
        metavar="SHARE:FACTOR",
        help="0.1:5: every tenth takes 5 times",
    )
    add("--slow-workers", type=_pair, metavar="N:FACTOR", help="N workers are always slower")
    add("--preemption", type=_pair, metavar="EVERY:AWAY", help="of a worker, in seconds")
    add("--day", type=_pair, metavar="SECONDS:FACTOR", help="load over a day, up to FACTOR")
    add(
        "--trace",
        nargs="+",
        metavar="FILE",
        help="of semisync.TraceHook, instead of all but --preemption and --day",
    )


def _add_costs(group):
    default = Costs()
    add = group.add_argument
    for name, text in (
        ("pull", "on all servers together, per batch"),
        ("push", "the same"),
        ("apply", "on all servers together, per batch of a global step"),
        ("apply_step", "on all servers together, per global step"),
        ("latency", "of a message, one way"),
    ):
        add(
            "--" + name.replace("_", "-"),
            type=float,
            default=1e3 * getattr(default, name),
            metavar="MS",
            help=text + " (default: %(default)g)",
        )
    add(
        "--payload",
        type=int,
        default=default.payload,
        metavar="BYTES",
        help="of a batch's gradients",
    )
    add("--cores", type=int, default=4, metavar="N", help="of each server (default: 4)")


def _add_answer(group):
    add = group.add_argument
    add("--steps", type=int, default=200, metavar="N", help="global steps (default: 200)")
    add("--seed", type=int, default=0, metavar="N")
    add("--advise", action="store_true", help="propose M, the bound and the number of servers")
    add(
        "--max-mean-staleness",
        type=float,
        metavar="S",
        help="with which --advise may choose M, in global steps (default: {})".format(
            MEAN_STALENESS
        ),
    )
    add_json(group, "the figures")
    add("--plot", metavar="FILE", help="draw them too, as .svg, .png or .pdf (extra: report)")


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Makes an error about a number name the option that gave it."""
    try:
        yield
    except OutOfRange as error:
        option = _OPTION_OF.get(error.meaning)
        if option is None:  # it is an option's name already
            raise
        raise UsageError("{}: {}".format(option, error)) from error


def refuse_beside(what, args, names):
    """Raises UsageError if an option is given that would have no effect."""
    for name in names:
        if getattr(args, name) is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError("{} does not use {}: leave it out".format(what, option))


def modes_of(args: argparse.Namespace, size: int) -> Dict[str, Any]:
    """The wanted modes by name, with global batches of `size` batches."""
    if args.backup is not None:
        whole("--backup", args.backup, 1, args.workers - 1)
    backup = args.backup or max(1, args.workers // 20)
    policy, on_stale = _policy(args), args.on_stale or "keep"
    known = {
        "async": modes.Async(),
        "native-sync": modes.SyncReplicas(size),
        "backup": modes.SyncReplicas(max(1, args.workers - backup)),
        "ssp": modes.SSP(_bound(args)),
        "semi-sync": modes.SemiSync(size, policy, on_stale, _in_flight(args)),
        "sync": modes.SemiSync(size, paced=True),
    }
    return {name: known[name] for name in MODES if name in (args.modes or MODES)}


def _bound(args):
    return _BOUND if args.bound is None else args.bound


def _in_flight(args):
    if args.mean_staleness is None:
        return args.in_flight
    try:
        return pacing.checked(pacing.MeanStaleness(args.mean_staleness))
    except UsageError as error:
        raise UsageError("--mean-staleness: {}".format(error)) from error


def _policy(args):
    if not args.policy:
        try:
            return staleness.Threshold(_bound(args))
        except UsageError as error:
            raise UsageError("--bound: {}".format(error)) from error
    text = args.policy
    name, bracket, numbers = text.partition("(")
    known = ("Threshold", "Inverse", "Polynomial", "Hinge", "Exponential")
    if name not in known or not bracket or not numbers.endswith(")"):
        raise UsageError("--policy is one of {}, not {!r}".format(", ".join(known), text))
    try:
        given = json_text.loads("[{}]".format(numbers[:-1]))
        return getattr(staleness, name)(*given)
    except (ValueError, TypeError, UsageError) as error:
        raise UsageError("--policy {!r}: {}".format(text, error)) from error


def cluster_of(args: argparse.Namespace) -> Cluster:
    """The cluster, whose numbers `simulate` checks."""
    if args.trace:
        refuse_beside("--trace", args, _IN_A_TRACE)
    costs = Costs(
        pull=args.pull / 1e3,
        push=args.push / 1e3,
        apply=args.apply / 1e3,
        apply_step=args.apply_step / 1e3,
        latency=args.latency / 1e3,
        payload=args.payload,
    )
    return Cluster(args.workers, args.servers, _times(args), costs, args.cores)


def _times(args):
    given = {"traces": read_traces(args.trace or ())}
    if args.demand is not None:
        given["demand"] = args.demand / 1e3
    if args.pause is not None:
        given["pause"] = args.pause / 1e3
    if args.spread is not None:
        given["spread"] = args.spread
    for names, pair in (
        (("slow_share", "slow_factor"), args.slow_batches),
        (("slow_workers", "slow_worker_factor"), args.slow_workers),
        (("every", "away"), args.preemption),
        (("day", "day_factor"), args.day),
    ):
        given.update(zip(names, pair or ()))
    # `_pair` reads floats, and a number of workers is whole; `check_times` refuses any other.
    if "slow_workers" in given and given["slow_workers"].is_integer():
        given["slow_workers"] = int(given["slow_workers"])
    return Times(**given)


def _pair(text):
    try:
        left, right = map(float, text.split(":"))
    except ValueError:
        wrong = "expected two numbers A:B, not {!r}".format(text)
        raise argparse.ArgumentTypeError(wrong) from None
    return left, right
