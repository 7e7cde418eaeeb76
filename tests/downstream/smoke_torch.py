"""A server's rows become a table of TorchRec, which looks them up; a verdict is written."""

import pathlib
import subprocess
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import torch
import torchrec

from migrate.torchrec import build, load, read_model

semisync = str(pathlib.Path(sys.executable).with_name("semisync"))
table = pathlib.Path("user.model")  # as HugeCTR keeps it
table.mkdir()
np.array([2**40, -7, 12], np.int64).tofile(str(table / "key"))
np.array([[1, 2], [3, 4], [5, 6]], np.float32).tofile(str(table / "emb_vector"))
convert = [semisync, "convert", "user.model", "converted", "--ids", "mpzch"]
subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)

config = read_model("converted")
config["tables"][0].update(features=["user"], pooling="sum")
module = build(config).eval()
load(module, "converted")
ids = torch.tensor([-7, 2**40])
features = torchrec.KeyedJaggedTensor(["user"], ids, lengths=torch.tensor([1, 1]))
assert module(features)[0]["user"].tolist() == [[3.0, 4.0], [1.0, 2.0]]

random = np.random.default_rng(0)
label = random.random(20_000) < 0.3
score = random.normal(size=20_000) + label
columns = {"y": label, "old": score, "new": score + 1e-9}
pyarrow.parquet.write_table(pyarrow.table(columns), "scores.parquet")
parity = [semisync, "parity", "scores.parquet", "--label", "y", "--baseline-score", "old"]
parity += ["--candidate-score", "new", "--margin", "0.005", "--out", "report"]
subprocess.run(parity, check=True, stdout=subprocess.DEVNULL)
versions = sys.version.split()[0], torch.__version__, torchrec.__version__, np.__version__
print("convert, look-up, parity; Python {}, torch {}, torchrec {}, numpy {}".format(*versions))
