"""What `inspect --graph` prints can be run, and what it refuses is refused for the same reason."""

import json
import pathlib
import runpy
import shlex
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync.cli import main
from tests.model.conftest import zoo, zoo_tf2  # noqa: F401  fixtures
from tests.model.zoo.read import models
from tests.support.parquet_rows import columns
from tests.support.require import forked_tensorflow, shared, tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_calls.py")
STRANGERS = [
    "criteo_tf_tile/model.ckpt-40000",
    "criteo_tf_tile/tile/model.ckpt-0",
    "haiy_dist_ps/model.ckpt-504",
    "jhollowayj_distributed/model.ckpt-0",  # a graph alone
    "joonyoung_dist_2shards/model.ckpt-0",
    "movie_recommender_brickhoff/save",  # without its data
    "princewen_ffm/FFM-0",
    "tf_feature_column_embedding/testdata/embedding.ckpt",
    "tf_session_bundle_v1_v2/half_plus_two_ckpt_v2/00000123/export",
    "tf_session_bundle_v1_v2/half_plus_two_v1/00000123/export",
    "xdl_blaze_model/model.ckpt",
]
SCORED = ["wide_and_deep", "dssm", "words"]  # text, sparse placeholders, a flag; others take long


@pytest.fixture(scope="session", params=["1.15", "2.x"])
def graphs(request):
    """Folder of the graphs of write_calls.py, by each TensorFlow."""
    return written(tf1_python() if request.param == "1.15" else sys.executable, _WRITER)


def python_of(folder):
    of_1 = "1.15" in (folder / "version").read_text()
    return forked_tensorflow(tf1_python() if of_1 else sys.executable)


def inspected(path, capsys):
    """(call of score or None, call of convert or None, the reason against it)."""
    capsys.readouterr()
    assert main(["inspect", str(path), "--graph"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    (refused,) = [one for one in lines if "does not write the model: " in one] or [""]
    calls = [
        shlex.split(one)[1:] for one in lines if one.startswith("semisync ") and one != refused
    ]
    named = {call[0]: call for call in calls}
    return named.get("score"), named.get("convert"), refused.partition(": ")[2]


def check_conversion(path, tmp_path, monkeypatch, capsys):
    """What is promised is what happens."""
    monkeypatch.chdir(tmp_path)
    score, convert, reason = inspected(path, capsys)
    if convert is not None:
        assert main(convert) == 0, path
        assert (tmp_path / convert[2] / "model.py").exists()
    else:
        prefix = str(path)[: -len(".meta")] if path.suffix == ".meta" else str(path)
        assert main(["convert", prefix, "refused", "--model"]) == 3, path
        error = capsys.readouterr().err
        assert reason in error or reason.partition(",")[0] in error  # a file that is missing
    return score


def run_score(call, columns_of, flags, python, tmp_path):
    """The exit code of a call of score, with the words in capitals filled in."""
    pyarrow.parquet.write_table(pa.table(columns_of), tmp_path / "rows.parquet")
    filled = []
    for word in call:
        key, _, name = word.partition("=")
        if key == "COLUMN":
            bare = name.partition(":")[0]
            word = f"{bare if bare in columns_of else name}={name}"
        elif name == "VALUE":
            word = f"{key}={json.dumps(flags[key.partition(':')[0]])}"
        filled.append({"DATA": str(tmp_path / "rows.parquet"), "N": "0"}.get(word, word))
    return main([*filled, "--tf-python", python])


@pytest.mark.parametrize("of", [pytest.param("zoo", marks=pytest.mark.long), "zoo_tf2"])
def test_the_zoos_models_convert_as_promised(of, request, tmp_path, monkeypatch, capsys):
    for model in models(request.getfixturevalue(of)):
        folder = tmp_path / model.said["name"]
        folder.mkdir()
        check_conversion(pathlib.Path(model.prefix), folder, monkeypatch, capsys)


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.few(1)
def test_strangers_models_convert_as_promised(name, tmp_path, monkeypatch, capsys):
    path = shared("models") / name
    if not path.with_name(path.name + ".index").exists():
        path = path.with_name(path.name + ".meta")
    check_conversion(path, tmp_path, monkeypatch, capsys)


# A vector of keep_probs, which is no column; features in Examples; a loss that samples classes.
FED_OTHERWISE = ["deepfm", "parse_example", "youtube_dnn"]


def zoos_scores(folder, names, tmp_path, monkeypatch, capsys):
    failed = []
    for model in models(folder):
        name = model.said["name"]
        if name in FED_OTHERWISE or (names is not None and name not in names):
            continue
        if any(array.ndim > 2 for array in model.inputs().values()):
            continue  # columns hold numbers, text and lists of them
        place = tmp_path / name
        place.mkdir()
        monkeypatch.chdir(place)
        call, _, _ = inspected(model.prefix, capsys)
        flags = {flag["point"]: flag["evaluation"] for flag in model.said["flags"]}
        rows = columns(model, model.inputs())
        code = run_score(call, rows, flags, forked_tensorflow(), place)
        failed += [name] * (code != 0)
    assert failed == []


@pytest.mark.long
def test_the_calls_of_score_score(zoo, tmp_path, monkeypatch, capsys):  # noqa: F811
    zoos_scores(zoo, SCORED, tmp_path, monkeypatch, capsys)


@pytest.mark.long
def test_the_calls_of_score_score_every_model(zoo, tmp_path, monkeypatch, capsys):  # noqa: F811
    zoos_scores(zoo, None, tmp_path, monkeypatch, capsys)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["full", "columns", "rank", "unknown"])
def test_a_sparse_placeholder_of_any_shape_is_one_input(
    graphs, name, tmp_path, monkeypatch, capsys
):
    score = check_conversion(graphs / name, tmp_path, monkeypatch, capsys)
    assert "--sparse" in score
    rows = {"tags": [[1, 2], [2], [3], [4], [5], [6], [7], [8, 9, 10]]}
    assert run_score(score, rows, {}, python_of(graphs), tmp_path) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("read", "shape"),
    [
        ("looked_up", "columns"),
        ("looked_up_safely", "unknown"),
        ("made_dense", "unknown"),
        ("summed", "columns"),
    ],
)
def test_a_sparse_placeholder_without_a_name_is_one_input(
    graphs, read, shape, tmp_path, monkeypatch, capsys
):
    path = graphs / "without_name" / f"{read}_{shape}"
    score = check_conversion(path, tmp_path, monkeypatch, capsys)
    given = [word for word in score if word.startswith("COLUMN=")]
    (tags,) = [word for word in given if "," in word]
    assert len(given) == 2
    assert score[score.index(tags) - 1] == "--sparse"
    rows = {"tags": [[1, 2], [2], [3], [4], [1, 3, 4, 5, 6]], "Placeholder": [0.5, 1, 2, 3, 4]}
    score[score.index(tags)] = tags.replace("COLUMN", "tags")
    python = python_of(graphs)
    assert run_score(score, rows, {}, python, tmp_path) == 0
    (name,) = [one for one in read_inputs(tmp_path) if one != "Placeholder"]
    called = ["verify", str(path), "converted", "--forward", str(tmp_path / "rows.parquet")]
    called += ["--no-onnx", "--tf-python", python, "--sparse", f"tags={name}"]
    assert main(called) == 0


def read_inputs(folder):
    (place,) = folder.glob("*/model.py")
    return runpy.run_path(str(place))["INPUTS"]


def test_placeholders_of_the_types_of_a_sparse_ones_parts_are_features(graphs, capsys):
    score, _, _ = inspected(graphs / "features", capsys)
    assert "--sparse" not in score
    assert [word for word in score if word.startswith("COLUMN=")] == [
        "COLUMN=Placeholder:0",
        "COLUMN=Placeholder_1:0",
        "COLUMN=Placeholder_2:0",
    ]


def test_of_look_ups_in_a_sparse_servers_tables_the_op_is_named(graphs, tmp_path, capsys):
    """The table is not a variable of the checkpoint: what fills its wrapper is not known here."""
    _, convert, reason = inspected(graphs / "sparse_server", capsys)
    assert convert is None
    assert "has unknown ops: TFRA>CuckooHashTableFind of node 'lk/find'" in reason
    assert main(["convert", str(graphs / "sparse_server"), str(tmp_path / "o"), "--model"]) == 3
    assert "TFRA>CuckooHashTableFind of node 'lk/find'" in capsys.readouterr().err
