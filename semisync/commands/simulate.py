"""`semisync simulate`: a cluster's behaviour in each mode, before it is rented."""

import argparse

from semisync.answers import answer
from semisync.common.terminal import live, say
from semisync.simulate import figure, options
from semisync.simulate.limits import whole, within

_EXAMPLES = """examples:
  semisync simulate --workers 400 --servers 20 --batches-per-step 64 --slow-batches 0.1:5
  semisync simulate --workers 400 --demand 80 --spread 0.4 --advise --max-mean-staleness 2
  semisync simulate --workers 64 --trace traces/*.csv --modes semi-sync async --json"""

# Options that --advise does not use.
_OF_A_MODE = (
    "modes",
    "bound",
    "policy",
    "on_stale",
    "in_flight",
    "mean_staleness",
    "backup",
    "plot",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.description = (
        "simulates a job on a cluster of parameter servers, mode by mode: pace, staleness,\n"
        "fates of batches, waiting and memory; times are in milliseconds"
    )
    parser.epilog = _EXAMPLES
    options.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Simulates and prints."""
    with options.named():
        return _run(args)


def _run(args):
    whole("--steps", args.steps, 1)
    if args.batches_per_step is not None:
        whole("--batches-per-step", args.batches_per_step, 1)
    cluster = options.cluster_of(args)
    if args.advise:
        return _advise(args, cluster)
    if args.plot is not None:
        figure.check(args.plot)
    options.refuse_beside("a simulation without --advise", args, ["max_mean_staleness"])
    return _compare(args, cluster)


def _compare(args, cluster):
    from semisync.simulate.simulation import simulate

    size = args.batches_per_step or cluster.workers
    results = {}
    for name, mode in options.modes_of(args, size).items():
        live("simulating {}".format(name))
        results[name] = simulate(cluster, mode, args.steps * size, args.seed)
    live("")
    answer(args.json, _document(results), _table(results))
    _say_if_short(cluster, results)
    if args.plot:
        figure.draw(results, args.plot)
    return 0


def _say_if_short(cluster, results):
    """A sentence on stderr where a day was not simulated as a whole."""
    seconds, day = min(result.seconds for result in results.values()), cluster.times.day
    if day is not None and seconds < day:
        said = "{:.3g} s were simulated, of a day of {:g} s: give more --steps"
        say("semisync simulate: " + said.format(seconds, day), error=True)


def _advise(args, cluster):
    from semisync.simulate.advise import advise

    options.refuse_beside("--advise", args, _OF_A_MODE)
    size = args.batches_per_step
    if size is not None:
        options.refuse_beside("--advise with --batches-per-step", args, ["max_mean_staleness"])
    most = options.MEAN_STALENESS
    if args.max_mean_staleness is not None:
        most = args.max_mean_staleness
    within("--max-mean-staleness", most, 0)
    batches = args.steps * (size or cluster.workers)
    found = advise(cluster, most, size, batches, args.seed)
    _say_if_short(cluster, {"semi-sync": found.result})
    proposed = found._asdict()
    results = {"semi-sync": proposed.pop("result"), "async": proposed.pop("asynchronous")}
    sentence = (
        "batches_per_step={}, staleness=Threshold({}), parameter servers: {}; {:.2f} x the "
        "asynchronous pace, mean staleness {:.2f}, {:.2%} of the batches too stale".format(
            found.batches_per_step,
            found.bound,
            found.servers,
            found.result.batches_per_second / found.asynchronous.batches_per_second,
            found.result.mean_staleness,
            found.result.stale_share(),
        )
    )
    answer(args.json, _document(results, **proposed), [sentence])
    return 0


def _document(results, **more):
    return dict(more, **{name: one.to_json() for name, one in results.items()})


_HEAD = "mode           batches/s  x async  staleness  99 %  too stale  waiting  PS load  PS memory"
_ROW = "{:<13} {:>10.1f}  {:>7}  {:>9.2f}  {:>4}  {:>9.2%}  {:>7.1%}  {:>7.0%}  {:>6.0f} MB"


def _table(results):
    base = results.get("async")
    return [_HEAD, *(_row(name, result, base) for name, result in results.items())]


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
