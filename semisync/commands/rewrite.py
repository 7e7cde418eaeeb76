"""`semisync rewrite IN.meta OUT.meta --batches-per-step M`: see `semi_synchronize`."""

import argparse
import os

from semisync.answers import add_json, answer
from semisync.common import files
from semisync.common.errors import BadInput, UsageError
from semisync.common.logs import suppress_tensorflow_log
from semisync.common.terminal import say

_EXAMPLES = """examples:
  semisync rewrite job.meta semi-sync.meta --batches-per-step 32 --max-staleness 4
  semisync rewrite job.meta --batches-per-step 32 --dry-run --json"""


def configure(parser):
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "source",
        metavar="IN.meta",
        help="the MetaGraph of a training job, or a folder of checkpoints: the newest one's",
    )
    parser.add_argument("out", metavar="OUT.meta", nargs="?", help="where to write the new one")
    _declare_optimizer(parser.add_argument_group("the global batch"))
    _declare_graph(parser.add_argument_group("what the graph may not tell"))
    _declare_variables(parser.add_argument_group("single variables and hyperparameters"))
    parser.add_argument(
        "--overwrite", action="store_true", help="replace OUT.meta if there is such a file"
    )
    parser.add_argument(
        "--strict", action="store_true", help="write no graph where there is anything to warn of"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the report, write no graph")
    add_json(parser, "the report")


def _declare_optimizer(group):
    group.add_argument(
        "--batches-per-step",
        type=int,
        required=True,
        metavar="M",
        help="local batches in a global batch: global batch size / local batch size",
    )
    group.add_argument(
        "--max-staleness",
        type=int,
        metavar="N",
        help="global steps that a batch may be late and still count; default: any number",
    )
    group.add_argument(
        "--on-stale",
        choices=("keep", "drop"),
        default="keep",
        help="a batch that is too late leaves its slot empty (keep) or to another batch (drop)",
    )
    group.add_argument(
        "--on-nonfinite",
        choices=("drop", "stop", "keep"),
        default="drop",
        help="a batch with a NaN or an infinity in a gradient leaves its slot to another one, ends "
        "the training, or counts, as a graph that scales its loss needs it",
    )
    group.add_argument(
        "--paced", action="store_true", help="synchronous: M batches a step, none of them late"
    )
    group.add_argument(
        "--in-flight", type=int, metavar="K", help="how many batches may be under way at once"
    )


def _declare_graph(group):
    group.add_argument(
        "--train-op",
        action="append",
        metavar="NAME",
        help="where the graph can be trained in several ways; if given several times, these are "
        "run together",
    )
    group.add_argument(
        "--global-step",
        metavar="NAME",
        help="the variable that counts global steps, where the graph does not tell",
    )
    group.add_argument(
        "--ps",
        type=int,
        metavar="N",
        help="for a graph without devices: variables go to N parameter servers, in turn",
    )
    group.add_argument(
        "--keep-devices", action="store_true", help="leave the exporting worker's task on the ops"
    )


def _declare_variables(group):
    group.add_argument(
        "--set",
        action="append",
        type=_name_and_number,
        default=[],
        metavar="NAME=VALUE",
        help="a hyperparameter, placeholder or constant, and the value that it keeps",
    )
    group.add_argument(
        "--batch-norm",
        choices=("aggregate", "aggregate-once", "async"),
        default="aggregate",
        help="whose moving statistics count: the global batch's, or each worker's own (async)",
    )
    group.add_argument(
        "--move-statistics",
        action="store_true",
        default=None,
        help="have the chief move the statistics of a BatchNorm, too, whose updates no train op "
        "runs: the job fetches them by name, or forgot them",
    )
    group.add_argument(
        "--no-move-statistics",
        action="store_false",
        dest="move_statistics",
        help="leave these as they are, without a warning: they are frozen",
    )
    group.add_argument(
        "--policy",
        nargs=2,
        action="append",
        metavar=("REGEX", "MODE"),
        help='"semi-sync" or "async" for the variables whose name the regex finds; the first of '
        "several that finds one counts",
    )
    group.add_argument(
        "--share",
        nargs=2,
        action="append",
        metavar=("REGEX", "HOW"),
        help='updates of variables that are not trained, such as counters: "sum", "mean" or "last" '
        "of those of the global batch's local batches",
    )


def run(args):
    """Rewrites, and prints the report."""
    _check_outputs(args)
    with suppress_tensorflow_log():
        from graph_rewrite.metagraph.files import meta_file, read
        from graph_rewrite.metagraph.semi_synchronize import semi_synchronize
        from semisync.staleness import Threshold

    source = meta_file(args.source)
    _check_own(source, args)
    meta, report = semi_synchronize(
        read(source),
        args.batches_per_step,
        staleness=None if args.max_staleness is None else Threshold(args.max_staleness),
        on_stale=args.on_stale,
        on_nonfinite=args.on_nonfinite,
        paced=args.paced,
        in_flight=args.in_flight,
        batch_norm=args.batch_norm,
        policy=args.policy,
        shared_updates=args.share,
        train_op=args.train_op,
        keep_devices=args.keep_devices,
        ps=args.ps,
        global_step=args.global_step,
        fixed=dict(args.set),
        move_statistics=args.move_statistics,
    )
    answer(args.json, report.to_dict(), ["read     " + source, *report.lines()])
    for sentence in report.warnings:
        say("semisync rewrite: warning: " + sentence, error=True)
    if args.strict and report.warnings:
        raise BadInput(
            "{} has {} (see above), and --strict is given: no graph is written".format(
                source, "1 warning" if len(report.warnings) == 1 else "warnings"
            )
        )
    if not args.dry_run:
        files.write_bytes(args.out, meta.SerializeToString(deterministic=True))
    return 0


def _name_and_number(text):
    name, _, value = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError("{!r} is not NAME=VALUE".format(text))
    try:
        return name, float(value)
    except ValueError:
        message = "{!r} is not a number, in {!r}".format(value, text)
        raise argparse.ArgumentTypeError(message) from None


def _check_own(source, args):
    """Raises UsageError if the graph would be written over the one that is read, or another."""
    if args.dry_run or not os.path.exists(args.out):
        return
    if os.path.samefile(source, args.out):
        raise UsageError("{} is the graph to rewrite: give OUT.meta another name".format(args.out))
    if not args.overwrite:
        raise UsageError("{} is there already: pass --overwrite to replace it".format(args.out))


def _check_outputs(args):
    if args.out is None and not args.dry_run:
        raise UsageError("OUT.meta is missing: say where to write the graph, or pass --dry-run")
    path = None if args.dry_run else args.out
    folder = os.path.dirname(path or "")
    if folder and not os.path.isdir(folder):
        raise UsageError(
            "{} cannot be written, since there is no folder {}: make it first".format(path, folder)
        )
    if path:
        files.check_writable(path)
