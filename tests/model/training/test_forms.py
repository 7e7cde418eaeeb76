"""However a part of a job is written, who wraps, converts, scores and trains sees the same part."""

import json
import pathlib
import sys

import numpy as np
import pytest
import torch

import migrate
from migrate.model.training.build import build_training
from migrate.runtime import BatchNorm
from semisync import cli
from tests.support.require import tf1_python
from tests.support.written import semisync_sources, written

_WRITER = pathlib.Path(__file__).with_name("write_forms.py")
PLACES = "table", "ids", "rows", "net", "statistic", "logit", "loss", "rate", "gradient"


@pytest.fixture(params=["references", "resources"])
def variables(request):
    return request.param


@pytest.mark.few(5)
@pytest.mark.parametrize("python", [tf1_python, lambda: sys.executable], ids=["tf1", "tf2"])
@pytest.mark.parametrize("form", [*PLACES, "statistics"])
def test_every_door_reads_the_form(python, variables, form, tmp_path, capsys):
    folder = written(python(), _WRITER, semisync_sources()) / variables / form
    prefix = str(folder / "model.ckpt")
    with np.load(folder / "job.npz") as file:
        job = dict(file)
    rows = {"ids": torch.tensor(job["rows"]), "label": torch.tensor(job["label"])}

    words = "rewrite", prefix + ".meta", str(tmp_path / "out.meta"), "--batches-per-step", "4"
    assert cli.main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert f"of {int(job['layers'])} BatchNorm" in " ".join(report["changes"])
    assert "BatchNorm" not in " ".join(report["left"])

    module = migrate.load_model(prefix, output="scores").eval()
    scores = module({"ids": rows["ids"]})
    np.testing.assert_allclose(scores.detach().numpy(), job["scores"], rtol=1e-5, atol=1e-6)

    training = build_training(prefix)
    layers = [one for one in training.module.modules() if isinstance(one, BatchNorm)]
    assert len(layers) == int(job["layers"]) == (13 if form == "statistics" else 1)
    assert training.optimizer.left_out == []
    training.module.train()
    training.module(rows).sum().backward()
    training.optimizer.step()
    back = migrate.write_checkpoint(training, tmp_path / "back", original=prefix)
    with migrate.open_checkpoint(back.prefix) as checkpoint:
        for name in checkpoint:
            np.testing.assert_allclose(
                checkpoint.read(name), job["after/" + name], rtol=2e-5, atol=1e-6, err_msg=name
            )
