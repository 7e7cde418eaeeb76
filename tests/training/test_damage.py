"""A checkpoint of a training that is not as it was written is named, and not trained on."""

import os
import shutil

import pytest
import torch

from migrate.training import Checkpoints
from semisync.cli import main
from semisync.common import json_text
from semisync.common.errors import BadInput
from tests.id_tables.process import flip, run
from tests.id_tables.reference import assert_same
from tests.training.command import arguments, refusal
from tests.training.kills import contents, differing
from tests.training.test_id_tables import straight

EVERY = ["--checkpoint-every", "8", "--keep", "9"]


@pytest.fixture(scope="module")
def whole(job, clicks, tmp_path_factory):
    """The folder of a training that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole")
    assert main(arguments(job, clicks, out, *EVERY)) == 0
    return out


@pytest.fixture()
def stopped(whole, tmp_path):
    """(a folder of its own, the newest two of its checkpoints)"""
    shutil.copytree(whole, tmp_path / "stopped")
    checkpoints = tmp_path / "stopped" / "checkpoints"
    return tmp_path / "stopped", sorted(checkpoints.iterdir())[:-3:-1]


@pytest.mark.parametrize("name", ["__0_0.distcp", ".metadata", "state.json", "digests.json"])
@pytest.mark.parametrize("at", [0.02, 0.5, 0.98])
@pytest.mark.few(1)
def test_the_checkpoint_before_a_damaged_one_is_gone_on_from(
    job, clicks, whole, stopped, capsys, name, at
):
    out, (newest, before) = stopped
    flip(newest / name, at)
    capsys.readouterr()
    assert main(arguments(job, clicks, out, *EVERY, "--resume")) == 0
    said = capsys.readouterr().err
    assert f"{newest} is damaged: " in said and "the one before it is taken" in said
    assert newest.with_name(newest.name + ".damaged").is_dir()
    (last, wanted), (ended, found) = contents(whole), contents(out)
    assert last == ended and differing(wanted, found) == []
    log = (out / "log.jsonl").read_text()
    assert log == (whole / "log.jsonl").read_text()


def test_a_file_that_is_gone_or_cut_is_damage_too(stopped):
    out, (newest, before) = stopped
    os.remove(newest / "state.json")
    os.truncate(before / "__0_0.distcp", 9)
    checkpoints = Checkpoints(str(out / "checkpoints"))
    with pytest.raises(BadInput, match="state.json"):
        checkpoints.check(checkpoints.steps[-1])
    with pytest.raises(BadInput, match="__0_0.distcp is not as it was written, its SHA-256 differ"):
        checkpoints.load(checkpoints.steps[-2], {})


@pytest.mark.long
def test_where_all_are_damaged_nothing_is_trained(job, clicks, stopped, capsys):
    out, _ = stopped
    for path in out.glob("checkpoints/*/__0_0.distcp"):
        flip(path)
    given = arguments(job, clicks, out, "--resume")
    capsys.readouterr()
    message = refusal(given, capsys)
    assert "is damaged: __0_0" in message and "nor is one before it sound: train" in message
    assert len(list(out.glob("checkpoints/*.damaged"))) == 0


def test_a_damaged_checkpoint_is_not_written_back(job, stopped, capsys, tmp_path):
    _, (newest, _) = stopped
    flip(newest / "__0_0.distcp")
    back = ["convert", "--to-tensorflow", str(newest), str(tmp_path / "back")]
    assert f"{newest} is damaged" in refusal(
        [*back, "--original", str(job / "clicks.ckpt")], capsys
    )


@pytest.mark.long
def test_one_without_digests_is_read_as_it_is(job, clicks, whole, stopped):
    out, (newest, _) = stopped
    os.remove(newest / "digests.json")
    assert main(arguments(job, clicks, out, *EVERY, "--resume")) == 0
    assert differing(contents(whole)[1], contents(out)[1]) == []


@pytest.mark.long
def test_all_files_of_all_processes_and_tables_are_compared(interpreters, tmp_path):
    rows, weights = straight(tmp_path / "straight")
    parts = run(interpreters / "python", "damaged", tmp_path, 2)
    together = {one: row for _, (own, *_), _ in parts for one, row in own.items()}
    assert_same(together, rows[0], 1e-4)
    for step, _, dense in parts:
        assert step == 12
        torch.testing.assert_close(dense, weights, rtol=1e-4, atol=1e-4)
    folder = tmp_path / "looping-2" / "checkpoints"
    assert (folder / "step-00000006.damaged").is_dir()
    written = [path for path in (folder / "step-00000012").rglob("*") if path.is_file()]
    names = {str(path.relative_to(folder / "step-00000012")) for path in written}
    compared = json_text.read(folder / "step-00000012" / "digests.json")
    assert set(compared) == names - {"digests.json"}
    assert any(name.endswith(".1-of-2.parquet") for name in names)
