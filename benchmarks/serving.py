"""Ways to serve a converted model, over the zoo of the tests: what works, and what it costs.

    python -m benchmarks.serving [--zoo FOLDER] [--models NAME ...] [--ways WAY ...] [--repeats N]
    python -m benchmarks.serving [--zoo FOLDER] --auc

FOLDER has the models of tests/model/zoo/write_all.py; by default TensorFlow 1.15 trains them. Of
each model the part that computes with numbers is served, for the 48 rows that the zoo has recorded,
and for half of them, which shows that the number of rows is free:

    compile   torch.compile, one graph, any number of rows
    export    torch.export, saved and loaded
    AOT       the exported program compiled by AOTInductor into a package, loaded
    bf16      torch.autocast
    int8      torchrec's quantize_embeddings: rows of the tables in eight bits, but of odd length

A cell is the time of a batch over the module's, and the largest difference of an output from the
module's own, relative to an output beyond 1; or why the way does not work.

With --auc, what bf16 and int8 cost: Wide & Deep of the zoo is trained on in torch with 100,000 rows
of its log, twice, and scores 200,000 others, which `parity` compares.
"""

import copy
import functools
import io
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torchrec

import parity
from benchmarks.commands import TF1
from benchmarks.harness.options import AnyOf, options
from benchmarks.harness.turns import ratios, turns
from benchmarks.tables import head, row, timed
from migrate import runtime
from migrate.model.load import load_model
from tests.model.features import as_input, features
from tests.model.test_export import half
from tests.model.zoo.log import draw
from tests.model.zoo.read import models

WRITER = str(pathlib.Path(__file__).parents[1] / "tests" / "model" / "zoo" / "write_all.py")
SECONDS = 0.2  # of one repeat


class Served:
    """A model's numeric part and its batches: all rows, and half of them."""

    def __init__(self, written):
        outputs = list(written.said["outputs"].values())
        self.module = load_model(written.prefix, output=outputs)
        inputs = features(written)
        batches = [inputs, {key: half(value) for key, value in inputs.items()}]
        self.part = self.module
        if hasattr(self.module, "transform"):
            batches = [self.module.transform(batch) for batch in batches]
            self.part = runtime.NumericPart(self.module)
        self.batches = batches
        self.own = [self.run(self.part, batch) for batch in batches]

    @staticmethod
    def run(way, batch):
        """The outputs."""
        with torch.inference_mode():
            found = way(batch)
        return found if isinstance(found, tuple) else (found,)

    def exported(self):
        """The program of torch.export."""
        sizes = torch.export.AdditionalInputs()
        for batch in self.batches:
            sizes.add((batch,))
        return torch.export.export(self.part, (self.batches[0],), dynamic_shapes=sizes)


def compiled(served, folder):
    return torch.compile(served.part, fullgraph=True, dynamic=True)


def exported(served, folder):
    file = io.BytesIO()
    torch.export.save(served.exported(), file)
    file.seek(0)
    return torch.export.load(file).module()


def ahead(served, folder):
    path = os.path.join(folder, "model.pt2")
    torch._inductor.aoti_compile_and_package(served.exported(), package_path=path)
    return torch._inductor.aoti_load_package(path)


def autocast(served, folder):
    def run(batch):
        with torch.autocast("cpu", torch.bfloat16):
            return served.part(batch)

    return run


def quantized(served, folder):
    from torchrec.inference.modules import quantize_embeddings
    from torchrec.quant.embedding_modules import EmbeddingCollection

    kinds = {torchrec.EmbeddingCollection: EmbeddingCollection}
    part = copy.deepcopy(served.part)
    odd = {name: torch.float32 for name, dim in dims(part).items() if dim % 2}  # FBGEMM's limit
    return quantize_embeddings(part, torch.qint8, True, list(kinds), kinds, torch.float32, odd)


def dims(part):
    """The length of a row, by the name of each table in a collection."""
    found = {}
    for one in part.modules():
        if isinstance(one, torchrec.EmbeddingBagCollection):
            found.update(
                (config.name, config.embedding_dim) for config in one.embedding_bag_configs()
            )
        elif isinstance(one, torchrec.EmbeddingCollection):
            found.update((config.name, config.embedding_dim) for config in one.embedding_configs())
    return found


WAYS = {
    "compile": compiled,
    "export": exported,
    "AOT": ahead,
    "bf16": autocast,
    "int8": quantized,
}


def difference(found, own):
    """The largest difference, relative to an output where that is beyond 1."""
    pairs = [(one.double(), other.double()) for one, other in zip(found, own)]
    return max(float(((a - b).abs() / b.abs().clamp(min=1)).max()) for a, b in pairs)


def seconds(way, batch):
    """Seconds per batch."""
    started, times = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS / 4:
        Served.run(way, batch)
        # Tried for a quarter of SECONDS: four times as many take about all of it.
        times += 4
    return timed(lambda: [Served.run(way, batch) for _ in range(times)])[0] / times


def cell(served, name, repeats):
    """A way's cell in the table."""
    torch._dynamo.reset()
    try:
        with tempfile.TemporaryDirectory() as folder:
            way = WAYS[name](served, folder)
            found = [Served.run(way, batch) for batch in served.batches]
            apart = max(map(difference, found, served.own))
            sides = {
                side: functools.partial(seconds, side, served.batches[0])
                for side in (way, served.part)
            }
            times = ratios(*turns(sides, repeats).values())
    except Exception as error:
        return "no: " + (str(error).strip().splitlines() or [type(error).__name__])[0][:24]
    return f"{statistics.median(times):.2f}, {apart:.0e}"


def trained(written, passes=2, rows=100_000, size=500):
    """Wide & Deep, trained on; a `Served` of it."""
    served = Served(written)
    log = batch_of(draw(rows, seed=11))
    optimizer = torch.optim.Adam(served.module.parameters(), 0.003)
    for start in range(0, passes * rows, size):
        one = slice(start % rows, start % rows + size)
        given = {name: value[one] if value.shape else value for name, value in log.items()}
        scores = served.module(given)[0]
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(scores, given["label"]).backward()
        optimizer.step()
    served.module.eval()
    return served


def batch_of(rows):
    """Rows of the zoo's log as Wide & Deep takes them."""
    given = {name: as_input(rows[name]) for name in ("user", "item_id", "city", "hour", "age")}
    flags = {"keep_prob": torch.tensor(1.0), "training": torch.tensor(False)}
    return {**given, **flags, "label": as_input(rows["clicked"])}


def print_auc(written):
    """A row for each way that changes scores."""
    served = trained(written)
    log = batch_of(draw(200_000, seed=12))
    given = served.module.transform(log)
    labels = log["label"].numpy()
    own = Served.run(served.part, given)[0].numpy()
    print(head("way | AUC | less by | 95 % interval | verdict"))
    print(row("float32", f"{parity.auc(labels, own):.5f}", "", "", ""))
    for name in ("bf16", "int8"):
        scores = Served.run(WAYS[name](served, ""), given)[0].float().numpy()
        found = parity.compare(labels, own, scores)
        low, high = found.interval
        cells = [name, f"{parity.auc(labels, scores):.5f}", f"{-found.delta:.1e}"]
        print(row(*cells, f"{-high:.1e} to {-low:.1e}", found.verdict.name.lower()))


def main():
    """The command line."""
    args = options(
        __doc__, zoo=str, tf_python=TF1, models=[], ways=AnyOf(WAYS), repeats=3, auc=False
    )
    torch.set_num_threads(1)
    runtime.keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        if args.zoo is None:
            subprocess.run([args.tf_python, "-W", "ignore", WRITER, folder], check=True)
        measure(args, models(pathlib.Path(args.zoo or folder)))


def measure(args, zoo):
    """Prints a table."""
    if args.auc:
        print_auc(next(one for one in zoo if one.said["name"] == "wide_and_deep"))
        return
    print(head(["model", *args.ways]))
    for written in zoo:
        if not args.models or written.said["name"] in args.models:
            served = Served(written)
            cells = [cell(served, name, args.repeats) for name in args.ways]
            print(row(written.said["name"], *cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
