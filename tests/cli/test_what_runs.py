"""Which command runs what it is given: the table of docs/security.md, row by row, on what a
stranger might send. Each piece makes a file where it is run: the graph `graph-ran`, model.py
`model-ran`, a module of one's own `module-ran`, a pickle `pickle-ran`.
"""

import pathlib
import pickle
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync import cli
from tests.support.hostile import touching
from tests.support.require import fastest_tensorflow, forked_tensorflow
from tests.support.written import written

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "security.md"
PIECES = ("graph", "model", "module", "pickle")

# Label in the table -> the arguments, {} being the folder of what was sent; and what is run.
COMMANDS = {
    "inspect": [("inspect {}/model.ckpt", ""), ("inspect {}/out", "")],
    "inspect --graph": [
        ("inspect {}/model.ckpt --graph", ""),
        ("inspect {}/frozen.pb --graph", ""),
        ("inspect {}/exported --graph", ""),
    ],
    "convert": [("convert {}/model.ckpt new", "")],
    "convert --model": [
        ("convert {}/model.ckpt new-model --model", ""),
        ("convert {}/frozen.pb new-frozen --model", ""),
    ],
    "convert --to-tensorflow": [
        ("convert --to-tensorflow {}/out back --original {}/model.ckpt", ""),
    ],
    "verify": [("verify {}/model.ckpt {}/out", ""), ("verify {}/frozen.pb {}/frozen", "")],
    "verify --forward": [
        ("verify {}/model.ckpt {}/out --no-onnx --forward {}/rows.parquet", "graph model"),
    ],
    "verify --steps": [
        (
            "verify {}/model.ckpt {}/out --steps 1 --data {}/rows.parquet --batch-size 9",
            "graph model",
        ),
    ],
    "score --checkpoint": [
        (
            "score {}/rows.parquet --checkpoint {}/model.ckpt --output score --input x "
            "--input item --out a",
            "graph",
        ),
    ],
    "score --saved-model": [
        ("score {}/rows.parquet --saved-model {}/exported --input x --input item --out b", "graph"),
    ],
    "score --converted": [("score {}/rows.parquet --converted {}/out --out c", "model")],
    "score --torch-model": [
        (
            "score {}/rows.parquet --converted {}/out --torch-model {}/own.py:build --input x "
            "--out d",
            "module",
        ),
    ],
    "train": [
        (
            "train {}/model.ckpt --data {}/rows.parquet --label clicked --steps 1 "
            "--batch-size 50 --out trained",
            "",
        ),
    ],
    "parity": [
        (
            "parity {}/rows.parquet --label clicked --baseline-score item --candidate-score key "
            "--out report",
            "",
        ),
    ],
    "rewrite": [("rewrite {}/model.ckpt.meta new.meta --batches-per-step 2", "")],
    "migrate": [
        (
            "migrate {}/model.ckpt --data {}/rows.parquet --label clicked --steps 0 --out migrated",
            "graph",
        ),
    ],
}
OF_TENSORFLOW = ("verify", "score", "migrate")

OWN = """
open("module-ran", "w")
import torch

class Model(torch.nn.Module):
    def forward(self, features):
        return features["x"].sum(1)

def build(converted):
    return Model()
"""


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """The folder of what a stranger sent: everything in it but the pickles."""
    folder = tmp_path_factory.mktemp("sent") / "sent"
    source = written(fastest_tensorflow(), pathlib.Path(__file__).with_name("write_armed.py"))
    shutil.copytree(source, folder)
    with np.load(folder / "rows.npz") as arrays:
        rows = {name: list(values) for name, values in arrays.items()}
    rows["key"] = np.arange(len(rows["item"]))
    pyarrow.parquet.write_table(pa.table(rows), folder / "rows.parquet")
    (folder / "own.py").write_text(OWN)
    for name, out in (("model.ckpt", "out"), ("frozen.pb", "frozen")):
        assert cli.main(["convert", str(folder / name), str(folder / out), "--model"]) == 0
        model = folder / out / "model.py"
        model.write_text("open('model-ran', 'w')\n" + model.read_text())
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(sent, arguments):
    """The exit code of a command."""
    given = [one.format(*[sent] * 3) for one in arguments.split()]
    if given[0] in OF_TENSORFLOW:
        given += ["--tf-python", forked_tensorflow()]
    return cli.main(given)


def ran(here):
    return " ".join(piece for piece in PIECES if (here / f"{piece}-ran").exists())


LONG = [pytest.param("rewrite", marks=pytest.mark.long)]  # which imports TensorFlow


@pytest.mark.few(2)
@pytest.mark.parametrize("label", [*(one for one in COMMANDS if one != "rewrite"), *LONG])
def test_a_command_runs_what_the_page_says_and_nothing_else(sent, here, capsys, label):
    for arguments, runs in COMMANDS[label]:
        for piece in PIECES:
            (here / f"{piece}-ran").unlink(missing_ok=True)
        code = run(sent, arguments)
        assert code in (0, 1, 2), capsys.readouterr().err
        assert ran(here) == runs


def rows_of_the_page():
    """{command: (what it reads, what it runs)} of the table."""
    text = PAGE.read_text(encoding="utf-8").partition("## Which command runs what it is given")[2]
    table = text.partition("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    return {command: (reads, runs) for command, reads, runs in rows}


def test_the_page_says_of_every_command_whether_it_runs_what_it_is_given():
    rows = rows_of_the_page()
    for label, cases in COMMANDS.items():
        nothing = rows[label][1].startswith("nothing")
        assert nothing == (not any(runs for _, runs in cases)), label
    assert {command.split()[0] for command in rows} == set(cli.SUBCOMMANDS)


# What unpickles, or did: the file with the pickle, what it stands in the place of, the arguments.
PICKLES = {
    "verify": (".metadata", "verify {}/model.ckpt {}/out"),
    "verify --sample": (".metadata", "verify {}/model.ckpt {}/out --sample 3"),
    "verify --steps": (
        ".metadata",
        "verify {}/model.ckpt {}/out --steps 1 --data {}/rows.parquet --batch-size 9",
    ),
    "score": (".metadata", "score {}/rows.parquet --converted {}/out --out scores"),
    "convert --to-tensorflow": (
        ".metadata",
        "convert --to-tensorflow {}/out back --original {}/model.ckpt",
    ),
    "inspect": (".metadata", "inspect {}/out"),
    "verify of a frozen graph": ("constants.npz", "verify {}/frozen.pb {}/out"),
    "parity": ("day1.part", "parity --merge {}/out/day1.part --out report"),
}


@pytest.mark.parametrize("name", PICKLES)
def test_no_command_unpickles_what_a_stranger_sent(sent, here, name):
    file, arguments = PICKLES[name]
    for one in sent.iterdir():
        if one.name != "out":
            (here / one.name).symlink_to(one)
    out = "frozen" if file == "constants.npz" else "out"
    shutil.copytree(sent / out, here / "out")
    genuine = (here / "out" / file).read_bytes() if file == ".metadata" else pickle.dumps(3)
    (here / "out" / file).write_bytes(touching("pickle-ran", genuine))
    assert run(here, arguments) in ((0,) if name == "inspect" else (1, 3))
    assert "pickle" not in ran(here)


@pytest.fixture
def log(here):
    """Events of a few users, and the settings of a model of them."""
    events = np.arange(90)
    rows = {"user": events // 9, "item": events * 7 % 30, "time": events}
    pyarrow.parquet.write_table(pa.table(rows), here / "log.parquet")
    (here / "small.yaml").write_text(
        "data: {time: time}\nmodel: {dim: 8, heads: 2, layers: 1, length: 8, buckets: 16}\n"
        "loss: {count: 8}\ntraining: {epochs: 1, tokens: 60}\n"
    )


TRAININGS = {
    "train": (
        "train {}/model.ckpt --data {}/rows.parquet --label clicked --batch-size 50 --out trained",
        "train {}/model.ckpt --data {}/rows.parquet --label clicked --batch-size 50 --out trained "
        "--epochs 2 --resume",
        "convert --to-tensorflow {step} back --original {}/model.ckpt",
    ),
    "sequence": (
        "sequence train small.yaml --data log.parquet --out trained",
        "sequence evaluate trained --data log.parquet --out figures",
        "sequence export trained --data log.parquet --out vectors",
    ),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_no_training_unpickles_its_checkpoint(sent, here, log, capsys, name):
    begin, *rest = TRAININGS[name]
    assert run(sent, begin) == 0
    (*_, index) = sorted(here.glob("trained/checkpoints/*/.metadata"))
    for best in here.glob("trained/best/*/.metadata"):
        best.unlink()
    index.write_bytes(touching("pickle-ran", index.read_bytes()))
    (index.parent / "digests.json").unlink()  # which whoever wrote it could write too
    capsys.readouterr()
    for arguments in rest:
        assert run(sent, arguments.replace("{step}", str(index.parent))) == 3
        assert "it names io.open, which is no record of torch" in capsys.readouterr().err
    assert ran(here) == ""
