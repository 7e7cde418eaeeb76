"""The benchmark of the thirty days runs in short, and TorchRec repeats TensorFlow's steps."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.thirty_days_parts import stages
from benchmarks.thirty_days_parts.plan import QUICK
from tests.support.programs import output_of
from tests.support.require import fastest_tensorflow, tfra_python

pytestmark = pytest.mark.long


def interactions(path, days):
    """A log with the real one's columns."""
    random, rows = np.random.RandomState(0), 3000
    columns = {
        "user": np.sort(random.randint(1, 40, rows)),
        "seq": np.arange(rows),
        "problem": random.randint(1, 60, rows),
        "skill": random.randint(1, 100, rows),
        "label": random.randint(0, 2, rows),
        "day": random.randint(0, days, rows),
    }
    order = np.lexsort((columns["user"], columns["seq"], columns["day"]))
    pq.write_table(pa.table({name: values[order] for name, values in columns.items()}), path)


@pytest.fixture(scope="module", params=sorted(QUICK))
def plan(request):
    return QUICK[request.param]


@pytest.fixture(scope="module")
def found(plan, tmp_path_factory):
    """The folder of one seed in short; said.md beside it."""
    folder = tmp_path_factory.mktemp("days")
    command = [sys.executable, "-m", "benchmarks.thirty_days", "--quick", "--seeds", "1"]
    if plan.tables == "hash":
        command += ["--tables", "hash", "--python", tfra_python()]
    else:
        interactions(folder / "log.parquet", plan.days)
        command += ["--python", fastest_tensorflow(), "--data", str(folder / "log.parquet")]
    command += ["--out", str(folder / "out")]
    (folder / "said.md").write_text(output_of(*command), encoding="utf-8")
    return folder


def test_torchrec_gives_every_row_the_score_of_the_exact_job(found, plan):
    sides = [
        pq.read_table(found / "out" / "seed-1" / f"{name}.parquet").sort_by("key")
        for name in ("exact", "torchrec")
    ]
    assert sides[0].num_rows == (plan.days - plan.switch) * plan.most * plan.global_batch
    for name in ("key", "label", "day"):
        assert sides[0][name].to_pylist() == sides[1][name].to_pylist()
    logits = [side["logit"].to_numpy() for side in sides]
    assert np.abs(logits[0]).max() > 0.1
    assert np.allclose(*logits, atol=1e-5)


def test_the_tables_and_figures_have_every_day(found, plan):
    said = (found / "said.md").read_text()
    names = ["torchrec", "semi-sync", *(["whole"] if plan.whole else [])]
    assert "| day | TensorFlow | TorchRec | {} |".format(" | ".join(names)) in said
    assert "\n| 2 |" in said and "\n| 3 |" in said
    (same,) = (line for line in said.splitlines() if "the same global batches" in line)
    assert abs(float(same.split(" | ")[2])) < 1e-4


def test_what_is_done_is_not_repeated(found, plan, monkeypatch):
    def none(*_, **__):
        raise AssertionError("a stage that is done began again")

    monkeypatch.setattr(stages.cluster, "train", none)
    monkeypatch.setattr(stages, "_semisync", none)
    out = found / "out"
    stages.carry_out(stages.Seed(1, plan, str(out / "seed-1"), str(out / "data"), "none"))
