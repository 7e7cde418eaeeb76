"""What a conversion lacks is found, whatever it is: the checkpoint does not stand in for it."""

import pathlib
import shutil

import pytest

import migrate as migrate_package
from migrate.verification import verify
from semisync.cli import main
from tests.migration.test_migrate import again, job, migrate, migrated, report, states  # noqa: F401
from tests.support.conversions import make_plan
from tests.support.lossy import lose
from tests.support.require import fastest_tensorflow, forked_tensorflow
from tests.support.written import written

ITEMS = "embeddings_4.embeddings.items_table.weight"
LOST = {
    "a table": ITEMS,
    "the slot of a table": f"optim.state.{ITEMS}.items_table.momentum1",
    "a dense variable": "dense.out/kernel",
    "the slot of a dense variable": "dense_optim.dense/bias.sum",
    "a statistic": "dense.batch_normalization/moving_variance",
    "the global step": "dense.global_step",
}


def verify_steps(job, out, capsys):  # noqa: F811
    """(exit code, what was printed) of two steps."""
    capsys.readouterr()
    data = ["--data", str(job / "rows.parquet"), "--input", "clicked=y", "--batch-size", "20"]
    prefix = str(job / "model.ckpt")
    more = ["--steps", "2", *data, "--tf-python", forked_tensorflow()]
    code = main(["verify", prefix, str(out), *more])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.fixture
def out(again):  # noqa: F811
    return again / "converted"


@pytest.mark.long
def test_a_whole_conversion_passes(job, out, capsys):  # noqa: F811
    assert verify(str(job / "model.ckpt"), str(out)).verified
    assert verify_steps(job, out, capsys)[0] == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", sorted(LOST))
def test_what_is_lost_is_found_by_verify_and_by_its_steps(job, out, kind, capsys):  # noqa: F811
    name = lose(out, LOST[kind])
    found = verify(str(job / "model.ckpt"), str(out))
    assert found.differences == [f"{name!r} was neither written nor dropped with a reason"]
    code, said = verify_steps(job, out, capsys)
    assert code == 1
    assert f"lacks {name!r}" in said


def test_rows_that_are_lost_are_found_too(job, out, capsys):  # noqa: F811
    lose(out, ITEMS, rows=1)
    found = verify(str(job / "model.ckpt"), str(out))
    assert found.differences == [f"{ITEMS!r} is [99, 4], but 'items' [100, 4]"]
    code, said = verify_steps(job, out, capsys)
    assert code == 1
    assert f"has [99, 4] as {ITEMS!r}" in said


def test_a_slot_that_was_left_out_with_a_reason_is_told_and_missed(job, out, capsys):  # noqa: F811
    name = lose(out, LOST["the slot of a dense variable"], reason="the plan leaves it out")
    found = verify(str(job / "model.ckpt"), str(out))
    assert found.verified
    assert f"not carried: {name}: the plan leaves it out" in found.notes
    code, said = verify_steps(job, out, capsys)
    assert code == 1
    assert f"lacks {name!r}" in said


@pytest.mark.long
def test_migrate_finds_it(job, again):  # noqa: F811
    lose(again / "converted", LOST["the slot of a table"])
    assert migrate(job, again) == 1
    assert report(again)["verdict"] == "NOT_MIGRATED"
    found = states(again)
    assert (found["values"], found["training"]) == ("failed", "failed")
    assert found["forward"] == "passed"


@pytest.mark.parametrize(
    "name", ["dense_optim.w0.step", "optim.state.ebc.embedding_bags.v.weight.step"]
)
def test_a_step_that_is_lost_or_wrong_is_found(tmp_path, name):
    writer = pathlib.Path(migrate_package.__file__).parents[1] / "tests/migrate/write_fm.py"
    prefix = written(fastest_tensorflow(), writer) / "two" / "model.ckpt-3"
    migrate_package.convert(make_plan(prefix), tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "wrong")
    lose(tmp_path / "out", name)
    (sentence,) = verify(str(prefix), str(tmp_path / "out")).differences
    assert "was updated 3 times, as 'beta2_power" in sentence
    assert f"{name!r} was not written" in sentence
    manifest = migrate_package.read_manifest(tmp_path / "wrong")
    (step,) = [one for one in manifest.tensors if one.fqn == name]
    step.value = 30.0
    (tmp_path / "wrong" / "manifest.json").write_text(manifest.to_json())
    found = verify(str(prefix), str(tmp_path / "wrong")).differences
    assert f"{name!r} is 30.0" in found[0]
