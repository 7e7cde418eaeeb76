"""The commands that `make bench` runs, in full and short, and the names of the printed tables."""

from typing import NamedTuple, Tuple

TF1 = ".venv-tf1/bin/python"
TFRA = ".venv-tfra/bin/python"


class Benchmark(NamedTuple):
    """A command: `python -m benchmarks.SCRIPT` with the words `full`, or `short`.

    In these, {tf1} is TensorFlow 1.15's interpreter, {tfra} the one with TFRA, {data} the data set
    of ASSISTments, and {to} the folder of the results.

    Attributes:
        name: of its result.
        tables: names of the tables that it prints, in order.
        takes: about how long in full, on two processors.
        interpreter: another Python.
        needs_files: where the script itself looks for data.
    """

    name: str
    script: str
    tables: Tuple[str, ...]
    full: str = ""
    short: str = ""
    takes: str = "minutes"
    interpreter: str = ""
    needs_zookeeper: bool = False
    needs_java: bool = False
    needs_files: Tuple[str, ...] = ()


_PACE = ("modes", "ratios", "short")
_ONE_CASE = "--cases uniform --seconds 2 --repeats 1"
_AUC = ("summary",)
_MITIGATED = "--data {data} --python {tf1} --modes sync semi-sync low-beta1 --delays"
_EIGHT = (
    "sync native-sync staleness-0.125 staleness-0.25 staleness-0.5 semi-sync backups async-tuned"
)
_RATE = "learning_rate=0.012"
_ADAGRAD = "optimizer=adagrad learning_rate=0.1 async_rate=0.05"

_OF_AUTHORS = (
    "--sets LastFM --seeds 1 --batches 0 --reference --authors ../generative-recommenders"
    ' --models HSTU "the authors\' HSTU"'
)


def _frontier(name, modes, settings, full):
    """AUC by pace, at global batches of 32."""
    words = (
        "--data {data} --python {tf1} --modes "
        + modes
        + " --delays --set batches_per_step=32 "
        + settings
    )
    return Benchmark(name, "auc_evidence", _AUC, words + full, words + " --quick", takes="an hour")


def _training(name, full, short, table="pace", tf="{tf1}"):
    """The pace of training on."""
    full = f"--tf-python {tf} " + full
    short = f"--tf-python {tf} --rows 128 --repeats 1 --seconds .2 " + short
    return Benchmark("training_pace" + name, "training_pace", (table,), full, short)


BENCHMARKS = (
    Benchmark(
        "pace_tf1",
        "semi_sync",
        _PACE,
        "--python {tf1} --json {to}/pace_tf1.figures --plot docs/pace.svg",
        "--python {tf1} --json {to}/pace_tf1.figures " + _ONE_CASE,
        takes="an hour",
    ),
    Benchmark("pace_tf2", "semi_sync", _PACE, "", _ONE_CASE, takes="an hour"),
    Benchmark(
        "simulator",
        "simulator",
        ("cases",),
        "{to}/pace_tf1.figures",
        "{to}/pace_tf1.figures --workers 100",
    ),
    Benchmark("demo", "demo_modes", ("modes",), "--figure docs/modes.svg"),
    Benchmark("demo_search", "demo_search", ("rates",), "", "--rates 0.006 --seeds 1"),
    Benchmark(
        "auc",
        "auc_evidence",
        _AUC,
        "--data {data} --python {tf1} --plot docs/auc.svg",
        "--data {data} --python {tf1} --quick",
        takes="hours",
    ),
    Benchmark(
        "auc_mitigated",
        "auc_evidence",
        _AUC,
        _MITIGATED + " --seeds 4",
        _MITIGATED + " --quick",
        takes="hours",
    ),
    _frontier(
        "frontier",
        _EIGHT,
        "pause_in=reading prefetch=1 " + _RATE,
        " --seeds 5 --frontier docs/frontier.svg",
    ),
    _frontier(
        "frontier_balanced",
        "sync staleness-0.125 async-tuned",
        "pause_in=reading prefetch=1 " + _RATE,
        " --seeds 5",
    ),
    _frontier(
        "frontier_adagrad",
        "sync staleness-0.125 semi-sync async-tuned",
        "pause_in=reading prefetch=1 " + _ADAGRAD,
        " --seeds 3",
    ),
    Benchmark(
        "rewrite_tf1", "rewrite", ("graphs",), "", "--nodes 3000 --repeats 1", interpreter=TF1
    ),
    Benchmark("rewrite_tf2", "rewrite", ("graphs",), "", "--nodes 3000 --repeats 1"),
    Benchmark(
        "convert",
        "convert",
        ("ways",),
        "--mb 1000 --repeats 5 --ways convert",
        "--mb 20 --repeats 1 --ways convert",
    ),
    Benchmark("object_stores", "object_stores", ("ways",), "", "--mb 20 --repeats 1"),
    Benchmark(
        "parity_speed",
        "parity",
        ("auc", "parquet"),
        "--repeats 3",
        "--rows 100000 --parquet 100000 --repeats 1",
    ),
    Benchmark(
        "parity_on_spark",
        "parity_on_spark",
        ("cases",),
        "",
        "--rows 20000",
        takes="a quarter of an hour",
        needs_java=True,
    ),
    Benchmark("coverage", "parity_coverage", ("intervals", "faults"), "", "--samples 20"),
    Benchmark(
        "verdicts",
        "parity_coverage",
        ("requirements", "tails", "advice", "useless", "copies", "runs", "heavy"),
        "--verdicts --samples 1000",
        "--verdicts --samples 20",
    ),
    Benchmark(
        "model",
        "model",
        ("speed", "conversion"),
        "--tf-python {tf1}",
        "--tf-python {tf1} --rows 256 --repeats 1",
    ),
    Benchmark(
        "serving",
        "serving",
        ("ways",),
        "--tf-python {tf1}",
        "--tf-python {tf1} --models fm --repeats 1",
        takes="an hour",
    ),
    Benchmark(
        "serving_auc", "serving", ("auc",), "--tf-python {tf1} --auc", "--tf-python {tf1} --auc"
    ),
    Benchmark(
        "judgement",
        "judgement",
        ("right", "planted"),
        "--tf-python {tf1}",
        "--tf-python {tf1} --sets 1",
        takes="an hour",
        needs_files=("../shared/data/criteo_tiny_3idiots/train.tiny.csv",),
    ),
    Benchmark("input", "input", ("one", "some"), "", "--rows 50000 --repeats 1"),
    Benchmark("examples", "examples", ("parsing", "reading"), "", "--rows 2000 --repeats 1"),
    _training("", "--seconds 1 --repeats 3", "--models mmoe"),
    _training("_tf2", "--seconds 1 --repeats 3", "--models mmoe", tf="{tfra}"),
    _training(
        "_optimizers",
        "--seconds 2 --repeats 3 --models deepfm --optimizers Adam Ftrl",
        "--models deepfm --optimizers Adam",
    ),
    _training(
        "_threads",
        "--seconds 2 --repeats 3 --models deepfm --threads 1 2 --busy",
        "--models deepfm --busy",
    ),
    _training("_files", "--seconds .5 --repeats 3 --files", "--files --models mmoe"),
    _training(
        "_parts",
        "--seconds 1 --repeats 3 --parts --models deepfm",
        "--parts --models mmoe",
        "parts",
    ),
    _training("_floor", "--seconds 1 --floor", "--floor", "floor"),
    Benchmark("id_tables", "id_tables", ("speed",), "", "--ids 20000 --batch 128 --steps 2"),
    Benchmark("id_tables_load", "id_tables", ("load",), "--load 100000000", "--load 100000"),
    Benchmark(
        "sequences",
        "sequences",
        ("packed", "blocks", "quality", "pace"),
        "",
        "--sets LastFM --seeds 1 --epochs 1 --batches 2 --repeats 1",
        takes="hours",
        needs_files=("../shared/data/amazon_s3rec/Beauty.txt",),
    ),
    Benchmark(
        "sequences_reference",
        "sequences",
        ("quality", "pace"),
        _OF_AUTHORS,
        _OF_AUTHORS + " --epochs 1",
        takes="half an hour",
        needs_files=("../shared/data/amazon_s3rec/LastFM.txt", "../generative-recommenders"),
    ),
    Benchmark(
        "thirty_days",
        "thirty_days",
        ("pooled", "days"),
        "--data {data} --python {tf1} --out out/thirty_days --plot docs/thirty_days.svg",
        "--data {data} --python {tf1} --out out/thirty_days_short --quick --seeds 1",
        takes="an hour or more",
    ),
    Benchmark(
        "thirty_days_hash",
        "thirty_days",
        ("pooled", "days"),
        "--tables hash --python {tfra} --out out/thirty_days_hash --plot docs/thirty_days_hash.svg",
        "--tables hash --python {tfra} --out out/thirty_days_hash_short --quick --seeds 1",
        takes="half an hour or more",
    ),
    Benchmark(
        "coordination",
        "coordination",
        ("agreement", "forwarding"),
        "--elections 8",
        "--elections 1 --members 20",
        needs_zookeeper=True,
    ),
    Benchmark(
        "chaos",
        "chaos",
        ("faults", "checks"),
        "--python {tf1}",
        "--python {tf1} --faults 3",
        takes="half an hour",
        needs_zookeeper=True,
    ),
    Benchmark("files", "files", ("copies",), "", "--megabytes 20 --repeats 1"),
)
