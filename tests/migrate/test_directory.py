"""A directory as the name of a checkpoint."""

import pathlib
import shutil

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
