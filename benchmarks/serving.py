"""Ways to serve a converted model, over the zoo of the tests: what works, and what it costs.

    python -m benchmarks.serving ZOO [--models NAME ...] [--repeats N]

ZOO is a folder of `tests.model.zoo.write_all`. Of each model the part that computes with numbers is
served, for the 48 rows that the zoo has recorded, and for half of them, which shows that the number
of rows is free:

    compile   torch.compile, one graph, any number of rows
    export    torch.export, saved and loaded
    AOT       the exported program compiled by AOTInductor into a package, loaded
    bf16      torch.autocast
    int8      torchrec's quantize_embeddings: rows of the tables in eight bits, but of odd length

A cell is the largest difference of an output from the module's own, relative to an output beyond 1,
and in front of it the time of a batch over the module's; or why it does not work.
"""

import argparse
import copy
import io
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torchrec

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from migrate import runtime
from migrate.model.load import load_model
from tests.model.features import features
from tests.model.test_export import half
from tests.model.zoo.read import models

SECONDS = 0.2  # of one repeat


class Served:
    """A model's numeric part, and what it is given: all rows, and half of them."""

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
    """The largest, relative to an output beyond 1."""
    pairs = [(one.double(), other.double()) for one, other in zip(found, own)]
    return max(float(((a - b).abs() / b.abs().clamp(min=1)).max()) for a, b in pairs)


def seconds(way, batch, repeats):
    """Of one batch: the median of the repeats."""
    started, times = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS / 4:
        Served.run(way, batch)
        times += 4
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(times):
            Served.run(way, batch)
        found.append((time.perf_counter() - started) / times)
    return statistics.median(found)


def cell(served, name, repeats):
    """Of one way."""
    torch._dynamo.reset()
    try:
        with tempfile.TemporaryDirectory() as folder:
            way = WAYS[name](served, folder)
            found = [Served.run(way, batch) for batch in served.batches]
            apart = max(map(difference, found, served.own))
            turns = [
                seconds(way, served.batches[0], 1) / seconds(served.part, served.batches[0], 1)
                for _ in range(repeats)
            ]
    except Exception as error:
        return "no: " + (str(error).strip().splitlines() or [type(error).__name__])[0][:70]
    return f"{statistics.median(turns):.2f}, {apart:.0e}"


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("zoo")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    runtime.keep_freed_memory()
    print(f"torch {torch.__version__}\n\n| model | {' | '.join(args.ways)} |")
    print("|---" * (len(args.ways) + 1) + "|")
    for written in models(pathlib.Path(args.zoo)):
        if not args.models or written.said["name"] in args.models:
            served = Served(written)
            cells = [cell(served, name, args.repeats) for name in args.ways]
            print(f"| {written.said['name']} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
