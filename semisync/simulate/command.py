"""`semisync simulate`: what a cluster will do in each mode, before it is rented."""

import argparse
import json
import sys

from semisync.common.errors import UsageError
from semisync.simulate.cluster import Cluster, Costs
from semisync.simulate.times import Times, read_traces

MODES = ("async", "native-sync", "backup", "ssp", "semi-sync", "sync")

_EXAMPLES = """examples:
  semisync simulate --workers 400 --servers 20 --batches-per-step 64 --slow-batches 0.1:5
  semisync simulate --workers 400 --demand 80 --spread 0.4 --advise --max-mean-staleness 2
  semisync simulate --workers 64 --trace traces/*.csv --modes semi-sync async --json"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.description = (
        "simulates a job on a cluster of parameter servers, mode by mode: pace, staleness,\n"
        "fates of batches, waiting and memory; times are in milliseconds"
    )
    parser.epilog = _EXAMPLES
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
    add("--bound", type=int, default=4, metavar="S", help="staleness bound (default: 4)")
    add("--policy", help="a staleness policy instead, such as 'Polynomial(0.5)'")
    add("--on-stale", choices=("keep", "drop"), default="keep")
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
        default=list(MODES),
        metavar="MODE",
        help=", ".join(MODES),
    )


def _add_times(group):
    default = Times()
    add = group.add_argument
    add(
        "--demand", type=float, default=1e3 * default.demand, metavar="MS", help="computing a batch"
    )
    add("--pause", type=float, default=0.0, metavar="MS", help="a batch's input, and the like")
    add("--spread", type=float, default=0.0, metavar="SIGMA", help="of the log-normal factor")
    add(
        "--slow-batches",
        type=_pair,
        metavar="SHARE:FACTOR",
        help="0.1:5: every tenth takes 5 times",
    )
    add("--slow-workers", type=_pair, metavar="N:FACTOR", help="N workers are always slower")
    add("--preemption", type=_pair, metavar="EVERY:AWAY", help="of a worker, in seconds")
    add("--day", type=_pair, metavar="SECONDS:FACTOR", help="load over a day, up to FACTOR")
    add("--trace", nargs="+", metavar="FILE", help="of semisync.TraceHook, instead of all of these")


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
        default=1.5,
        metavar="S",
        help="that --advise may propose, in global steps (default: 1.5)",
    )
    add("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """Simulates and prints."""
    from semisync.simulate.simulation import simulate

    cluster = _cluster(args)
    size = args.batches_per_step or cluster.workers
    if args.advise:
        return _advise(args, cluster)
    results = {}
    for name, mode in _modes(args, size).items():
        if sys.stderr.isatty():
            print("\rsimulating {}".format(name), end="\033[K", file=sys.stderr)
        results[name] = simulate(cluster, mode, args.steps * size, args.seed)
    if sys.stderr.isatty():
        print("\r", end="\033[K", file=sys.stderr)
    if args.json:
        print(json.dumps({name: result.to_json() for name, result in results.items()}, indent=1))
    else:
        print(_table(results))
    return 0


def _advise(args, cluster):
    from semisync.simulate.advise import advise

    size = args.batches_per_step
    batches = args.steps * (size or cluster.workers)
    found = advise(cluster, args.max_mean_staleness, size, batches, args.seed)
    pace = found.result.batches_per_second / found.asynchronous.batches_per_second
    if args.json:
        proposed = {"batches_per_step": found.batches_per_step, "bound": found.bound}
        print(
            json.dumps(
                dict(
                    proposed,
                    servers=found.servers,
                    **{"semi-sync": found.result.to_json(), "async": found.asynchronous.to_json()},
                ),
                indent=1,
            )
        )
        return 0
    print(
        "batches_per_step={}, staleness=Threshold({}), {} parameter servers: {:.2f} x the "
        "asynchronous pace, mean staleness {:.2f}, {:.2%} of the batches too stale".format(
            found.batches_per_step,
            found.bound,
            found.servers,
            pace,
            found.result.mean_staleness,
            found.result.stale_share(),
        )
    )
    return 0


def _modes(args, size):
    from semisync.simulate import modes

    backup = max(1, args.workers // 20) if args.backup is None else args.backup
    if not 0 < backup < args.workers and "backup" in args.modes and args.backup is not None:
        raise UsageError("--backup takes fewer than all workers")
    known = {
        "async": modes.Async(),
        "native-sync": modes.SyncReplicas(size),
        "backup": modes.SyncReplicas(max(1, args.workers - backup)),
        "ssp": modes.SSP(args.bound),
        "semi-sync": modes.SemiSync(size, _policy(args), args.on_stale, _in_flight(args)),
        "sync": modes.SemiSync(size, paced=True),
    }
    return {name: known[name] for name in MODES if name in args.modes}


def _in_flight(args):
    from semisync import pacing

    if args.mean_staleness is None:
        return args.in_flight
    return pacing.MeanStaleness(args.mean_staleness)


def _policy(args):
    from semisync import staleness

    text = args.policy or "Threshold({})".format(args.bound)
    name, bracket, numbers = text.partition("(")
    known = ("Threshold", "Inverse", "Polynomial", "Hinge", "Exponential")
    if name not in known or not bracket or not numbers.endswith(")"):
        raise UsageError("--policy is one of {}, not {!r}".format(", ".join(known), text))
    try:
        given = json.loads("[{}]".format(numbers[:-1]))
        return getattr(staleness, name)(*given)
    except (ValueError, TypeError) as error:
        raise UsageError("--policy {!r}: {}".format(text, error)) from error


def _cluster(args):
    share, slow_factor = args.slow_batches or (0.0, 1.0)
    slow_workers, slow_worker_factor = args.slow_workers or (0, 1.0)
    every, away = args.preemption or (None, 0.0)
    day, day_factor = args.day or (None, 1.0)
    times = Times(
        pause=args.pause / 1e3,
        demand=args.demand / 1e3,
        spread=args.spread,
        slow_share=share,
        slow_factor=slow_factor,
        slow_workers=int(slow_workers),
        slow_worker_factor=slow_worker_factor,
        every=every,
        away=away,
        day=day,
        day_factor=day_factor,
        traces=read_traces(args.trace or ()),
    )
    costs = Costs(
        pull=args.pull / 1e3,
        push=args.push / 1e3,
        apply=args.apply / 1e3,
        apply_step=args.apply_step / 1e3,
        latency=args.latency / 1e3,
        payload=args.payload,
    )
    numbers = [args.workers, args.servers, args.cores, args.steps, args.batches_per_step or 1]
    if min(numbers) < 1 or min(args.demand, args.pause, args.spread, *costs) < 0:
        raise UsageError("numbers of things are 1 or more, times 0 or more")
    return Cluster(args.workers, args.servers, times, costs, args.cores)


def _pair(text):
    left, colon, right = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError("expected two numbers A:B, not {!r}".format(text))
    return float(left), float(right)


_HEAD = "mode           batches/s  x async  staleness  99 %  too stale  waiting  PS load  PS memory"
_ROW = "{:<13} {:>10.1f}  {:>7}  {:>9.2f}  {:>4}  {:>9.2%}  {:>7.1%}  {:>7.0%}  {:>6.0f} MB"


def _table(results):
    base = results.get("async")
    return "\n".join([_HEAD, *(_row(name, result, base) for name, result in results.items())])


def _row(name, result, base):
    pace = result.batches_per_second
    return _ROW.format(
        name,
        pace,
        "{:.2f}".format(pace / base.batches_per_second) if base else "-",
        result.mean_staleness,
        result.staleness_quantile(0.99),
        result.stale_share(),
        result.waiting,
        result.server_load,
        result.payload_bytes / 1e6,
    )
