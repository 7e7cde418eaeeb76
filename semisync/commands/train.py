"""`semisync train PREFIX`: continues a TensorFlow job in torch, from its checkpoint.

1. The arguments are checked; with --nproc, torchrun's agent then starts the command once per
   process.
2. Each process builds the graph's loss and optimizer, keeps its part of the tables, and trains on
   its share of every global batch.
3. The figures go to the terminal and to OUT/report.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import warnings
from typing import Any, Dict, List, Tuple

from migrate.model.vocabulary_files import add_assets
from migrate.scoring.options import add_types
from migrate.servers import add_plugins
from parity.io.text_format import add_text, text_format
from semisync.answers import add_json, answer
from semisync.common.errors import UsageError
from semisync.common.files import check_writable, write_text
from semisync.common.terminal import say

_EXAMPLES = """examples:
  semisync train model.ckpt-40000 --data 'log/day=1[5-9]' --label click --out trained
  semisync train model.ckpt-40000 --data log --label click --day day --batch-size 4096 --epochs 2 \\
    --shuffle 100000 --eval-data test.parquet --out trained --nproc 2
  semisync train model.ckpt-40000 --data log --label click --out trained --resume
  torchrun --nproc-per-node 8 --max-restarts 3 -m semisync train model.ckpt-40000 --data log \\
    --label click --out trained --resume"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.epilog = _EXAMPLES
    add = parser.add_argument
    add("prefix", metavar="PREFIX", help="the checkpoint, with the graph that trained it")
    _add_files(parser.add_argument_group("the data"))
    _add_steps(parser.add_argument_group("steps"))
    _add_model(parser.add_argument_group("the graph"))
    _add_written(parser.add_argument_group("what is written"))
    add_processes(parser.add_argument_group("processes"))


def _add_steps(group: Any) -> None:
    add = group.add_argument
    size = positive
    add("--batch-size", metavar="N", type=size, default=1024, help="rows of a step (%(default)s)")
    add("--epochs", metavar="N", type=size, default=1, help="passes over the data (%(default)s)")
    add("--steps", metavar="N", type=size, help="end after this many steps in all")
    add(
        "--shuffle",
        metavar="ROWS",
        type=size,
        help="shuffle, in windows of at least this many rows",
    )
    add("--seed", metavar="N", type=int, default=0, help="of shuffling and chance (%(default)s)")
    add(
        "--last",
        choices=("drop", "keep"),
        help="what becomes of the rows of an epoch that are less than a batch (keep, as a smaller "
        "step, unless the graph takes batches of one size alone)",
    )


def _add_model(group: Any) -> None:
    add = group.add_argument
    add("--meta", metavar="FILE", help="the MetaGraph (default: PREFIX.meta)")
    add_plugins(group)
    add_assets(group)
    add("--output", metavar="TENSOR", help="the logits (default: those that the loss is given)")
    add("--loss", metavar="TENSOR", help="by default the one whose gradients are applied")
    add("--train-op", metavar="NODE", help="by default all training ops")
    add(
        "--frozen",
        choices=("fp16", "int8"),
        help="keep the tables that the graph does not train in fewer bits",
    )
    add(
        "--input",
        metavar="COL[=NAME]",
        action="append",
        default=[],
        help="the column of an input, or of a tensor that the graph computes; by default an input "
        "takes the one of its name",
    )
    add(
        "--feed",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an input or a hyperparameter that is one value for all steps, in JSON",
    )


def _add_written(group: Any) -> None:
    add = group.add_argument
    add("--out", metavar="DIR", required=True, help="checkpoints, log and report go there")
    add("--resume", action="store_true", help="go on from the newest checkpoint of DIR, if any")
    add("--checkpoint-every", metavar="N", type=positive, default=1000, help="steps (%(default)s)")
    add("--keep", metavar="N", type=positive, default=3, help="checkpoints (%(default)s)")
    add("--report-every", metavar="N", type=positive, default=100, help="steps (%(default)s)")
    add("--scores", metavar="FILE", help="write each row's score before its step there, as Parquet")
    add("--key", metavar="COL", help="column of the rows' keys, for --scores")
    add_json(group, "what report.json holds")


def _add_files(group: Any) -> None:
    add = group.add_argument
    add("--data", metavar="PATH", nargs="+", required=True, help="files, folders or patterns")
    add("--eval-data", metavar="PATH", nargs="+", help="measure the trained model on these files")
    add(
        "--label",
        metavar="COL",
        help="column of labels, 0 or 1: the loss compares with it, unless --input names another, "
        "and AUC and log loss are measured",
    )
    add("--day", metavar="COL", help="column of days, for AUC by day")
    add(
        "--fill",
        metavar="COL=VALUE",
        action="append",
        default=[],
        help="replaces a missing value, which otherwise ends the training, or is left out in a "
        "sparse input; COL= is empty text, and COL may be a pattern such as 'C*'",
    )
    add_types(group)
    add_text(group)


def add_processes(group: Any) -> None:
    """The options of a training in several processes."""
    add = group.add_argument
    add_device(group)
    add("--nproc", metavar="N", type=positive, help="start this many processes on this machine")
    add(
        "--threads",
        metavar="N",
        type=positive,
        help="threads of each process (by default its share of the processors that it may use, "
        "those of a container's quota)",
    )
    add(
        "--max-restarts",
        metavar="N",
        type=int,
        default=0,
        help="with --nproc: restart them this many times when one fails (%(default)s)",
    )
    add(
        "--deadline",
        metavar="SECONDS",
        type=positive,
        default=600,
        help="how long a process waits for the others (%(default)s)",
    )


def add_device(group: Any) -> None:
    """The option for the device that a model computes on."""
    text = "cpu, or cuda, of several processes a GPU each (%(default)s)"
    group.add_argument("--device", metavar="NAME", default="cpu", help=text)


def run(args: argparse.Namespace) -> int:
    """Trains; returns 0."""
    from migrate.training.checkpoints import refuse_existing
    from migrate.training.distributed.processes import (
        is_to_launch,
        joined,
        launch,
        rank,
        use_threads,
    )

    check_writable(args.out)
    _check_scores(args)
    if is_to_launch(args.nproc):
        refuse_existing(args.out, args.resume)  # here: every process is given --resume
        return launch(["train", *_arguments(args)], args.nproc, args.max_restarts)
    quieten()
    use_threads(args.threads)
    with joined(args.deadline, args.device) as device:
        try:
            _train(args, device)
        except KeyboardInterrupt:
            if rank() == 0:
                say("", "semisync train: interrupted; go on with --resume", error=True)
            raise
    return 0


def _check_scores(args: argparse.Namespace) -> None:
    if (args.scores is None) != (args.key is None):
        raise UsageError("--scores and --key go together; give both, or neither")
    if args.scores is None:
        return
    if args.label is None:
        raise UsageError("--scores needs --label too: the labels are written beside the scores")
    if args.epochs > 1:
        raise UsageError("--scores takes one epoch: in another, no row is new to the model")
    check_writable(args.scores)


def _train(args: argparse.Namespace, device: Any) -> None:
    from migrate.data import Shuffle
    from migrate.data.listing import other_order
    from migrate.model.training.begun import begun_text
    from migrate.model.training.recipe import left_out_text
    from migrate.scoring.model import columns_of, naming_inputs
    from migrate.training.distributed.processes import is_joined, rank, ranks, seed
    from migrate.training.reading import open_columns
    from migrate.training.scores import Scores
    from migrate.training.trainer import Settings, train

    size, rest = divmod(args.batch_size, ranks())
    if rest:
        raise UsageError(
            f"--batch-size {args.batch_size} cannot be divided among {ranks()} processes"
        )
    seed(args.seed + rank())
    task, reading, last = _opened(args)
    shuffle = None if args.shuffle is None else Shuffle(seed=args.seed, buffer=args.shuffle)
    text = text_format(args.text)
    named = columns_of(reading.taken())
    with naming_inputs(named):
        data = open_columns(args.data, reading, size, args.epochs, shuffle, last, text=text)
    order = other_order(args.data, text is not None) if shuffle is None and rank() == 0 else None
    if order is not None:
        say(order)
    if args.frozen is not None:
        _shrink(task, args.frozen)
    if is_joined():
        task = _shared_out(args, task, reading, last, device)
    else:
        task.module.to(device)  # the optimizer's state follows

    def evaluation() -> Any:
        with naming_inputs(named):
            return open_columns(args.eval_data, reading, size, last=last, text=text)

    begun, left_out = list(task.optimizer.begun), list(task.optimizer.left_out)
    if begun and rank() == 0:
        say(begun_text(begun))
    if left_out and rank() == 0:
        say(left_out_text(left_out))
    settings = Settings(args.steps, args.checkpoint_every, args.report_every, args.keep)
    scores = args.scores and Scores(args.scores, args.out, args.key, args.label, args.day)
    measured = evaluation if args.eval_data else None
    result = train(task, data, args.out, settings, args.resume, measured, scores)
    if rank() == 0:
        _write_report(args, result, data, {"begun": begun, "left_out": left_out})


def _opened(args: argparse.Namespace) -> Tuple[Any, Any, str]:
    """(the task of the checkpoint, its input columns, the treatment of the last rows)"""
    from migrate.graph.interface import label_feed
    from migrate.model.load import read_meta_graph
    from migrate.model.named_inputs import with_computed
    from migrate.open import open_checkpoint
    from migrate.scoring.module_inputs import input_called
    from migrate.scoring.options import constants, pairs, typed
    from migrate.training.converted_task import fixed_rows, open_converted
    from migrate.training.reading import reading_of

    checkpoint = open_checkpoint(args.prefix)
    fixed = fixed_rows(checkpoint, args.meta, args.train_op, args.loss)
    last = (args.last or "keep") if fixed is None else _last_of_fixed(args, fixed)
    feeds, scored = constants(args.feed), args.label is not None
    fills, types = dict(pairs(args.fill, "--fill")), dict(typed(args))
    named = {name or column: column for column, name in _halves(args.input)}
    graph = read_meta_graph(checkpoint, args.meta).graph
    converted = open_converted(
        checkpoint,
        args.meta,
        args.output,
        feeds,
        args.train_op,
        args.loss,
        scored,
        args.asset,
        with_computed(graph, named) or None,
    )
    inputs, label = converted.inputs, args.label
    compared = None if label is None else input_called(label_feed(graph) or "", inputs)
    if compared is not None and compared not in {input_called(name, inputs) for name in named}:
        named[compared] = label
    reading = reading_of(
        inputs,
        named,
        feeds,
        label,
        args.day,
        args.key,
        fills=fills,
        types=types,
        tables=converted.tables,
    )
    return converted.task, reading, last


def _last_of_fixed(args: argparse.Namespace, fixed: Any) -> str:
    """ "drop", for a graph that takes `fixed.size` rows and no other number; raises UsageError if
    the steps have another."""
    from migrate.training.distributed.processes import rank, ranks

    takes = f"the graph takes {fixed.size} rows at a time"
    takes += f"{' in each process' if ranks() > 1 else ''}, since {fixed.why}"
    due = fixed.size * ranks()
    if args.batch_size != due:
        raise UsageError(f"--batch-size {args.batch_size}: {takes}; give --batch-size {due}")
    if args.last == "keep":
        raise UsageError(f"--last keep: {takes}; give --last drop")
    if args.last is None and rank() == 0:
        say(f"--last drop: {takes}")
    return "drop"


def _halves(texts: List[str]) -> List[Tuple[str, str]]:
    """(column, name or "") of each --input."""
    return [text.partition("=")[::2] for text in texts]


def _shared_out(args: argparse.Namespace, task: Any, reading: Any, last: str, device: Any) -> Any:
    """The task over all processes, which take the steps of one."""
    from migrate.training.distributed.processes import ranks
    from migrate.training.distributed.sharding import distribute
    from migrate.training.distributed.shares import check_mean
    from migrate.training.reading import open_columns

    def first(share: int, of: int) -> Any:
        text, size = text_format(args.text), args.batch_size // of
        own = open_columns(args.data, reading, size, last=last, text=text, rank=share, ranks=of)
        return next(iter(own))

    check_mean(task.module, first(0, 1), [first(k, ranks()) for k in range(ranks())])
    return distribute(task, device)


def _shrink(task: Any, precision: str) -> None:
    from migrate.training.distributed.processes import rank
    from migrate.training.frozen import shrink

    trained = {target.attribute for target in task.optimizer.targets}
    shrunk = shrink(task.module, trained, precision)
    if not shrunk.tables:
        raise UsageError(f"--frozen {precision}: the graph trains all of its tables")
    if rank() == 0:
        say(
            f"frozen in {precision}: {', '.join(shrunk.tables)}; {shrunk.bytes_before:,} -> "
            f"{shrunk.bytes_after:,} bytes, values differ by up to {shrunk.largest:.3g}"
        )


def _write_report(
    args: argparse.Namespace, result: Any, data: Any, named: Dict[str, List[str]]
) -> None:
    from migrate.training.reporting import measured

    whole = result.metrics.whole()
    read = data.trained + data.dropped
    rows = {"read": read, "trained": data.trained, "dropped": data.dropped}
    report: Dict[str, Any] = {"schema": "semisync.train/1", "steps": result.step, "rows": rows}
    report.update((key, names) for key, names in named.items() if names)
    if whole is not None:
        report["training"] = measured(whole)
        report["days"] = {day: measured(one) for day, one in result.metrics.by_day().items()}
    if result.evaluation is not None:
        report["evaluation"] = measured(result.evaluation)
    path = os.path.join(args.out, "report.json")
    write_text(path, json.dumps(report, indent=1) + "\n")
    lines = []
    for name, figures in [("training", whole), ("evaluation", result.evaluation)]:
        if figures is not None:
            auc = "-" if figures.auc is None else f"{figures.auc:.5f}"
            lines.append(f"{name}: AUC {auc}, log loss {figures.loss:.5f}, {figures.rows:,} rows")
    lines.append(f"rows: {', '.join(f'{count:,} {name}' for name, count in rows.items())}")
    answer(args.json, report, [*lines, f"trained up to step {result.step:,}: {path}"])


_REPEATED = ("asset", "input", "feed", "fill", "type")  # each as often as one likes, or never


def _arguments(args: argparse.Namespace) -> List[str]:
    """Each process's options; one that is restarted resumes."""
    given = [args.prefix, "--resume", *["--json"] * args.json]
    for name, value in vars(args).items():
        option = "--" + name.replace("_", "-")
        if name in ("prefix", "nproc", "max_restarts", "resume", "json") or value is None:
            continue
        if name in _REPEATED:
            given += [text for one in value for text in (option, one)]
        else:
            given += [option, *map(str, value if isinstance(value, list) else [value])]
    return given


def positive(text: str) -> int:
    """A whole number from 1 on, of the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def quieten() -> None:
    """Silences torch's and torchrec's messages about their own workings, in this process."""
    for name in ("torch.fx._symbolic_trace", "torchrec"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
