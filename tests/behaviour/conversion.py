"""A model of the zoo, converted, with rows for it in Parquet files, and `semisync verify` of it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from migrate import open_checkpoint
from semisync import cli
from tests.model.zoo.read import Written
from tests.support.parquet_rows import columns


class Conversion:
    """model: of the zoo. out: what `semisync convert --model` wrote. python: TensorFlow's."""

    def __init__(self, zoo, name, folder, python):
        self.model, self.folder, self.python = Written(zoo / name), folder, python
        self.out = folder / "out"
        outputs = [f"--output={tensor}" for tensor in self.model.said["outputs"].values()]
        assert cli.main(["convert", self.model.prefix, str(self.out), "--model", *outputs]) == 0
        self.rows = self._parquet("rows", self.model.inputs())
        drawn = self.model.said["drawn"]
        fed = {k: v for k, v in self.model.steps()[0][0].items() if k not in drawn}
        self.training_rows = self._parquet("training_rows", fed)

    def _parquet(self, name, points):
        path = str(self.folder / f"{name}.parquet")
        pyarrow.parquet.write_table(pa.table(columns(self.model, points)), path)
        return path

    def flags(self, which):
        """The --feed options of the flags that are no truth values."""
        said = [(flag["point"], flag[which]) for flag in self.model.said["flags"]]
        return [
            f"--feed={point}={json.dumps(value)}"
            for point, value in said
            if value is not None and not isinstance(value, bool)
        ]

    def verify(self, capsys, *arguments):
        """(exit code, what was printed as JSON, or the error)."""
        capsys.readouterr()
        code = cli.main(
            [
                *("verify", self.model.prefix, str(self.out), "--tf-python", self.python, "--json"),
                *arguments,
            ]
        )
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if code in (0, 1) else printed.err

    def forward(self, capsys, *arguments):
        """`--forward` of its rows, without onnxruntime."""
        flags = self.flags("evaluation")
        return self.verify(capsys, "--forward", self.rows, "--no-onnx", *flags, *arguments)

    def steps(self, capsys, count, *arguments):
        """`--steps` on its rows, ten a step."""
        more = ["--steps", str(count), "--data", self.training_rows, "--batch-size", "10"]
        return self.verify(capsys, *more, *self.flags("steps"), *arguments)

    def change(self, tensor, by):
        """Adds to the first value of a tensor in the data; returns a function that undoes it."""
        with open_checkpoint(self.model.prefix) as checkpoint:
            value = checkpoint.read(tensor)
        path = self.out / "__0_0.distcp"
        before = path.read_bytes()
        at = before.find(value.tobytes())
        assert at > 0
        other = np.array(value.reshape(-1)[0] + by, value.dtype).tobytes()
        path.write_bytes(before[:at] + other + before[at + len(other) :])
        return lambda: path.write_bytes(before)
