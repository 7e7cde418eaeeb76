"""`semisync rewrite IN.meta OUT.meta --batches-per-step M`: see `graph_rewrite.meta_graph`."""

from semisync import files


def configure(parser):
    """Declares the arguments."""
    parser.add_argument("source", metavar="IN.meta", help="the MetaGraph of a training job")
    parser.add_argument("out", metavar="OUT.meta", help="where to write the new one")
    parser.add_argument(
        "--batches-per-step",
        type=int,
        required=True,
        metavar="M",
        help="local batches in a global batch: global batch size / local batch size",
    )
    parser.add_argument(
        "--max-staleness",
        type=int,
        metavar="N",
        help="global steps that a batch may be late and still count; default: any number",
    )
    parser.add_argument(
        "--on-stale",
        choices=("keep", "drop"),
        default="keep",
        help="a batch that is too late leaves its slot empty, or to another one",
    )
    parser.add_argument(
        "--paced", action="store_true", help="synchronous: M batches a step, none of them late"
    )
    parser.add_argument(
        "--in-flight", type=int, metavar="K", help="how many batches may be under way at once"
    )
    parser.add_argument(
        "--train-op", metavar="NAME", help="where the graph can be trained in several ways"
    )
    parser.add_argument(
        "--keep-devices", action="store_true", help="leave the exporting worker's task on the ops"
    )
    parser.add_argument(
        "--batch-norm",
        choices=("aggregate", "aggregate-once", "async"),
        default="aggregate",
        help="whose moving statistics count: the global batch's, or each worker's own (async)",
    )
    parser.add_argument(
        "--policy",
        nargs=2,
        action="append",
        metavar=("REGEX", "MODE"),
        help='"semi-sync" or "async" for the variables whose name the regex finds; the first of '
        "several that finds one counts",
    )
    parser.add_argument(
        "--share",
        nargs=2,
        action="append",
        metavar=("REGEX", "HOW"),
        help='updates of variables that are not trained, such as counters: "sum", "mean" or "last" '
        "of those of the global batch's local batches",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the report, write no graph")
    parser.add_argument("--svg", metavar="FILE", help="draw what changed, before and after")
    parser.add_argument("--json", metavar="FILE", help="write the report there, too")


def run(args):
    """Rewrites, and prints the report."""
    from graph_rewrite.meta_graph import read, semi_synchronize
    from graph_rewrite.picture import draw
    from semisync.staleness import Threshold

    meta, report = semi_synchronize(
        read(args.source),
        args.batches_per_step,
        staleness=None if args.max_staleness is None else Threshold(args.max_staleness),
        on_stale=args.on_stale,
        paced=args.paced,
        in_flight=args.in_flight,
        batch_norm=args.batch_norm,
        policy=args.policy,
        shared_updates=args.share,
        train_op=args.train_op,
        keep_devices=args.keep_devices,
    )
    print(report)
    if args.json:
        files.write_json(args.json, report.to_dict())
    if args.svg:
        files.write_text(args.svg, draw(report))
    if not args.dry_run:
        files.write_bytes(args.out, meta.SerializeToString(deterministic=True))
    return 0
