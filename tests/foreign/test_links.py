"""A folder of a stranger's brings no file of the reader's own machine along, by a link to it."""

import os

import numpy as np
import pytest

import migrate
from semisync import cli
from semisync.common.errors import BadInput
from tests.migrate.raw_tables import write_hugectr, write_tfra
from tests.support.bundles import write


def by_link(path, tmp_path):
    """The file as it was, elsewhere, with a link in its place."""
    (tmp_path / "private").mkdir()
    path.rename(tmp_path / "private" / path.name)
    path.symlink_to(tmp_path / "private" / path.name)
    return f"{path} is a link to {path.resolve()}, out of {path.parent}; put the file itself there"


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("kind", ["HugeCTR", "TFRA"])
def test_raw_files_without_checksums_are_not_read_through_a_link(tmp_path, capsys, kind, column):
    ids, rows = np.arange(4), np.ones((4, 2), np.float32)
    if kind == "HugeCTR":
        folder = write_hugectr(tmp_path / "dump", ids, rows)
    else:
        folder = write_tfra(tmp_path / "dump", "user", [(ids, rows)])
    sentence = by_link(sorted(folder.iterdir())[column], tmp_path)
    with pytest.raises(BadInput) as error:
        migrate.open_hash_tables(folder)
    assert str(error.value).startswith(sentence)
    assert cli.main(["convert", str(folder), str(tmp_path / "out")]) == 3
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_link_within_the_folder_is_followed(tmp_path):
    folder = write_hugectr(tmp_path / "dump", np.arange(4), np.ones((4, 2), np.float32))
    (folder / "key").rename(folder / "key.0")
    (folder / "key").symlink_to("key.0")
    assert migrate.open_hash_tables(folder)["dump"].stored == 4


def test_a_pipe_among_safetensors_files_is_not_waited_for(tmp_path, capsys):
    prefix, out = (
        str(write(tmp_path / "m", {"kernel": np.ones((2, 2), np.float32)})),
        tmp_path / "out",
    )
    convert = ["convert", prefix, str(out), "--target", "safetensors", "--no-tables"]
    assert cli.main(convert) == 0
    (file,) = out.glob("*.safetensors")
    file.unlink()
    os.mkfifo(file)
    assert cli.main(["verify", prefix, str(out)]) == 1
    assert f"{file} is not a regular file" in capsys.readouterr().out
