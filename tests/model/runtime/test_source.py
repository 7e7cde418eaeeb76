"""A converted directory's model.py is read as it stands."""

import os

from migrate.runtime.source import read_source

TEXT = "INPUTS, OUTPUTS, TRAINING = {}, [%d], None\nload = print\n"


def test_an_edit_that_keeps_size_and_time_is_seen(tmp_path):
    path = tmp_path / "model.py"
    for number in (1, 2):
        path.write_text(TEXT % number)
        os.utime(path, (1e9, 1e9))
        assert [number] == read_source(str(tmp_path)).OUTPUTS
    assert os.listdir(tmp_path) == ["model.py"]
