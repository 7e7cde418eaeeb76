"""A directory as the name of a checkpoint."""

import json
import pathlib
import shutil

import fsspec
import pytest

import migrate
from migrate.checkpoint.paths import checkpoint_prefix
from semisync import cli
from semisync.common.errors import BadInput
from tests.support.require import shared


def copied(folder, tmp_path, *names):
    for name in names:
        for file in folder.glob(f"{name}.*"):
            shutil.copy(file, tmp_path)
    return tmp_path


def test_its_file_checkpoint_names_the_latest(trained, tmp_path, capsys):
    last = (trained / "checkpoint").read_text().split('"')[1]
    assert checkpoint_prefix(trained) == str(trained / pathlib.Path(last).name)
    folder = copied(trained, tmp_path, "dense", "two_rates")
    (folder / "checkpoint").write_text('model_checkpoint_path: "two_rates"\n')
    with migrate.open_checkpoint(folder) as checkpoint:
        assert checkpoint.prefix == str(folder / "two_rates")
    assert cli.main(["inspect", str(folder)]) == 0
    assert f"{folder / 'two_rates'}.data-00000-of-00001" in capsys.readouterr().out
    out = str(tmp_path / "out")
    assert cli.main(["convert", str(folder), out]) == 0
    assert cli.main(["verify", str(folder), out]) == 0


@pytest.mark.parametrize(
    "path", ["/job/run/dense", "C:\\\\job\\\\dense", "dense", "\\144ense", "elsewhere/dense"]
)
def test_a_copied_directory_names_its_own_checkpoint(trained, tmp_path, path):
    folder = copied(trained, tmp_path, "dense")
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{path}"\n')
    assert checkpoint_prefix(str(folder)) == f"{folder}/dense"


def test_the_tables_of_a_sharded_v1_checkpoint_are_named_by_a_pattern(
    checkpoints, tmp_path, capsys
):
    for file in checkpoints.glob("slices_v1-*-of-*"):
        shutil.copy(file, tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/job/slices_v1-?????-of-00002"\n')
    assert cli.main(["inspect", str(tmp_path)]) == 0
    assert cli.main(["inspect", str(tmp_path / "slices_v1")]) == 0
    assert capsys.readouterr().out.count("all read and verified") == 2


def test_a_path_elsewhere_is_followed_where_nothing_here_has_the_name(trained, tmp_path):
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{trained / "dense"}"\n')
    assert checkpoint_prefix(tmp_path) == str(trained / "dense")


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (None, "has no file `checkpoint` that names one; give one of these: {0}/dense, {0}/two_"),
        ('model_checkpoint_path: "gone"', "checkpoint names gone, which is not there; give one of"),
        ("nothing", "has no line 'model_checkpoint_path: "),
        ('model_checkpoint_path: "\\377"', "is not a path in UTF-8"),
    ],
)
def test_where_nothing_decides_the_prefixes_are_listed(trained, tmp_path, capsys, state, sentence):
    folder = copied(trained, tmp_path, "dense", "two_rates")
    if state is not None:
        (folder / "checkpoint").write_text(state)
    for command in (["inspect"], ["convert", str(tmp_path / "out")]):
        assert cli.main([command[0], str(folder), *command[1:]]) == 3
        err = capsys.readouterr().err
        assert sentence.format(folder) in err and err.count("\n") == 1
    if state != 'model_checkpoint_path: "\\377"':
        assert f"{folder}/dense, {folder}/two_rates" in err


@pytest.fixture
def asked(trained, monkeypatch):
    """The URLs that anything asks for; at memory://elsewhere lies a checkpoint, `dense`."""
    fs = fsspec.filesystem("memory")
    for file in trained.glob("dense.*"):
        fs.pipe_file("/elsewhere/" + file.name, file.read_bytes())
        fs.pipe_file("/bucket/job/run/" + file.name, file.read_bytes())
    urls, url_to_fs = [], fsspec.core.url_to_fs
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: urls.append(url) or url_to_fs(url))
    yield urls
    for folder in ("/elsewhere", "/bucket"):
        fs.rm(folder, recursive=True)


COMMANDS = {
    "inspect": ["{}"],
    "convert": ["{}", "out"],
    "verify": ["{}", "{out}"],
    "score": ["{}/rows", "--checkpoint", "{}", "--out", "out", "--tf-python", "absent"],
}


@pytest.mark.parametrize(
    "url", ["memory://elsewhere/dense", "simplecache::memory://elsewhere/dense"]
)
def test_no_file_makes_a_command_ask_a_server(trained, asked, tmp_path, monkeypatch, capsys, url):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "converted"
    assert cli.main(["convert", str(trained / "dense"), str(out)]) == 0
    (tmp_path / "rows").touch()
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{url}"\n')
    capsys.readouterr()
    for command, arguments in COMMANDS.items():
        given = [one.format(tmp_path, out=out) for one in arguments]
        assert cli.main([command, *given]) == 3
        said = capsys.readouterr().err
        told = f"names {url}, which is not in {tmp_path}, and no other server is asked for it"
        assert told in said
    assert asked == []


@pytest.mark.parametrize(
    ("named", "prefix"),
    [
        ("run/dense", "memory://bucket/job/run/dense"),
        ("memory://bucket/job/run/dense", "memory://bucket/job/run/dense"),
        ("memory://elsewhere/dense", None),
        ("simplecache::memory://bucket/job/run/dense", None),
        ("run::memory:", None),
    ],
)
def test_a_url_names_what_its_own_server_has(asked, named, prefix):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/bucket/job/checkpoint", f'model_checkpoint_path: "{named}"'.encode())
    del asked[:]
    if prefix is not None:
        assert checkpoint_prefix("memory://bucket/job") == prefix
    else:
        with pytest.raises(BadInput, match="and no other server is asked for it"):
            checkpoint_prefix("memory://bucket/job")
    assert all(url.startswith("memory://bucket/job") and "::" not in url for url in asked)


def test_a_relative_path_begins_at_the_directory(trained, tmp_path, monkeypatch):
    (tmp_path / "job").mkdir()
    (tmp_path / "here").mkdir()
    copied(trained, tmp_path, "dense")
    (tmp_path / "job" / "checkpoint").write_text('model_checkpoint_path: "../dense"\n')
    monkeypatch.chdir(tmp_path / "here")
    assert checkpoint_prefix(tmp_path / "job") == f"{tmp_path}/job/../dense"


@pytest.mark.parametrize("key", ["newer", "meta"])
def test_a_manifest_makes_no_command_ask_a_server(trained, asked, tmp_path, capsys, key):
    out = tmp_path / "out"
    assert cli.main(["convert", str(trained / "dense"), str(out)]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["sha256"]
    manifest[key] = "memory://elsewhere/dense" + ".meta" * (key == "meta")
    (out / "manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    code = cli.main(["verify", str(trained / "dense"), str(out)])
    assert (code, asked) == (3 if key == "newer" else 0, [])
    assert key == "meta" or "no server is asked that PREFIX or OUT" in capsys.readouterr().err


def test_third_party_directories_name_theirs_or_list_them(tmp_path):
    models = shared("models")
    tile = models / "criteo_tf_tile" / "tile"
    assert checkpoint_prefix(tile) == str(tile / "model.ckpt-40000")
    movies = models / "movie_recommender_brickhoff"  # saved as F:/movieRecommender/save
    assert checkpoint_prefix(movies) == str(movies / "save")
    with pytest.raises(BadInput, match=r"names .*-29, which is not there; give .*-504, .*-6$"):
        checkpoint_prefix(models / "haiy_dist_ps")
    with pytest.raises(BadInput, match="half_plus_two_v1/00000123/export$"):
        migrate.open_checkpoint(
            models / "tf_session_bundle_v1_v2" / "half_plus_two_v1" / "00000123"
        )


def test_other_directories_stay_what_they_are(trained):
    for path in (trained / "exported", trained / "dense", "s3.index", str(trained) + "/absent"):
        assert checkpoint_prefix(path) == str(path)


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\x89HDF\r\n"])
def test_a_file_of_keras_is_refused_as_such(tmp_path, capsys, start):
    model = tmp_path / "model.keras"
    model.write_bytes(start + bytes(64))
    out = str(tmp_path / "out")
    for command in (
        ["inspect"],
        ["inspect", "--graph"],
        ["convert", out],
        ["convert", out, "--model"],
    ):
        assert cli.main([command[0], str(model), *command[1:]]) == 3
        assert "is a file of Keras's own" in capsys.readouterr().err
