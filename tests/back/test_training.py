"""TensorFlow goes on from what came back, as it would have from its own checkpoint.

Of each of these models of the zoo TensorFlow recorded five steps after the checkpoint.
"""

import json
import shutil

import numpy as np
import pytest
from torch.distributed import checkpoint as dcp

import migrate
from migrate.model.training.distance import relative
from migrate.model.training.steps import TOLERANCE, compare_steps
from semisync import cli
from semisync.common.errors import BadInput
from tests.back.same import assert_same
from tests.back.test_round_trip import convert
from tests.model.training.recorded import zoo_steps, zoo_training
from tests.model.zoo.read import models
from tests.support.programs import output_of
from tests.support.require import LONG, forked_tensorflow, tf1_python

# Momentum; slots under one name per part; moving statistics; a flag that is fed; centered RMSProp;
# tables in parts by mod and div; a second Adam's powers.
MODELS = (
    ["canned_linear", "dcn", "dssm", "lookups_resource", "wide_and_deep", "words", "xdeepfm"]
    if LONG
    else ["dcn", "dssm", "words"]
)
# The loss does not depend on a bias before a BatchNorm: its gradient is rounding errors, and the
# moving mean follows it.
NEUTRAL = ("deep/dense/bias", "deep/dense_1/bias", "moving_mean")
TABLES = {"lookups_resource": {"tables": "^lookups/plain$"}}  # others are parts by hand


@pytest.fixture(scope="module")
def of_zoo(zoo):
    return {model.said["name"]: model for model in models(zoo) if model.said["name"] in MODELS}


@pytest.fixture(scope="module")
def trained(of_zoo):
    """Each training after three of the recorded steps."""
    trainings = {name: zoo_training(model) for name, model in of_zoo.items()}
    for name, training in trainings.items():
        report = compare_steps(training, zoo_steps(of_zoo[name])[:3])
        assert report.exceeded is None, name
    return trainings


@pytest.fixture(scope="module")
def folder(of_zoo, trained, tmp_path_factory):
    """Folder of NAME/: `whole` and `later`, which TensorFlow went on with from step 3 of torch and
    from a conversion that came back, and `straight`, from the checkpoint itself."""
    folder, jobs = tmp_path_factory.mktemp("back"), []
    for name, model in of_zoo.items():
        place = folder / name
        place.mkdir()
        migrate.write_checkpoint(trained[name], place / "trained", original=model.prefix)
        convert(model.prefix, place / "converted", **TABLES.get(name, {}))
        migrate.write_checkpoint(place / "converted", place / "same", original=model.prefix)
        for prefix, steps, out in (
            (place / "trained", [3, 4], "later"),
            (place / "same", [0, 1], "whole"),
            (model.prefix, [0, 1], "straight"),
        ):
            job = {"folder": str(model.folder), "prefix": str(prefix), "steps": steps}
            jobs.append({**job, "out": str(place / out)})
    (folder / "jobs.json").write_text(json.dumps(jobs))
    command = [forked_tensorflow(tf1_python()), "-W", "ignore", "-m", "tests.back.take_steps"]
    output_of(*command, folder / "jobs.json")
    return folder


@pytest.mark.long
def test_a_job_goes_on_from_what_came_back_bit_for_bit(folder):
    for name in MODELS:
        assert_same(folder / name / "straight", folder / name / "whole")


def test_tensorflow_goes_on_where_torch_stopped(folder, of_zoo):
    for name in MODELS:
        expected = of_zoo[name].state(5)
        with migrate.open_checkpoint(folder / name / "later") as checkpoint:
            assert set(checkpoint) == set(expected)
            for tensor, value in expected.items():
                if tensor.startswith(NEUTRAL) or tensor.endswith(NEUTRAL):
                    continue
                scale = float(np.sqrt(np.mean(np.square(value, dtype=np.float64))))
                found = checkpoint.read(tensor).reshape(value.shape)
                assert relative(found, value, scale) <= 2 * TOLERANCE, (name, tensor)


@pytest.mark.long
def test_a_training_that_took_no_step_comes_back_bit_for_bit(of_zoo, tmp_path):
    for name, model in of_zoo.items():
        back = migrate.write_checkpoint(
            zoo_training(model), tmp_path / "back", original=model.prefix, overwrite=True
        )
        assert back.copied == [], name
        assert_same(model.prefix, tmp_path / "back")


@pytest.mark.long
def test_what_a_training_saved_comes_back_as_the_training_itself(of_zoo, trained, folder, tmp_path):
    for name, training in trained.items():
        tensors = {f"model.{key}": value for key, value in training.module.state_dict().items()}
        for (attribute, slot), value in training.optimizer.named_slots().items():
            tensors[f"optim.{attribute}.{slot}"] = value
        tensors.update((f"counter.{k}", v) for k, v in training.optimizer.counters.items())
        dcp.save(tensors, checkpoint_id=str(tmp_path / name), no_dist=True)
        prefix = of_zoo[name].prefix
        back = migrate.write_checkpoint(tmp_path / name, tmp_path / f"{name}.ckpt", original=prefix)
        assert back.copied == [], name
        assert_same(folder / name / "trained", back.prefix)
    for suffix in (".index", ".data-00000-of-00001"):
        shutil.copy(of_zoo["dcn"].prefix + suffix, tmp_path / f"bare{suffix}")
    bare, meta = tmp_path / "bare", of_zoo["dcn"].meta
    with pytest.raises(BadInput, match="there is no graph beside"):
        migrate.write_checkpoint(tmp_path / "dcn", tmp_path / "back", bare)
    back = migrate.write_checkpoint(tmp_path / "dcn", tmp_path / "back", bare, meta=meta)
    assert_same(folder / "dcn" / "trained", back.prefix)
    with pytest.raises(BadInput, match="has no 'model..*', which a training of this graph saves"):
        migrate.write_checkpoint(tmp_path / "dcn", tmp_path / "other", of_zoo["dssm"].prefix)


def test_what_a_training_of_model_py_saved_comes_back_too(of_zoo, trained, folder, tmp_path):
    for name in ("dcn", "words"):
        prefix, out = of_zoo[name].prefix, tmp_path / name
        assert cli.main(["convert", prefix, str(out), "--model"]) == 0
        module, optimizer = trained[name].module, trained[name].optimizer
        tensors = {f"net.{key}": value for key, value in module.state_dict().items()}
        for (attribute, slot), value in optimizer.named_slots().items():
            tensors[f"state.{attribute}.{slot}"] = value
        tensors.update((f"counters.{k}", v) for k, v in optimizer.counters.items())
        dcp.save(tensors, checkpoint_id=str(tmp_path / "dcp"), no_dist=True)
        back = migrate.write_checkpoint(tmp_path / "dcp", tmp_path / f"{name}.ckpt", prefix, out)
        assert (back.copied, back.notes) == ([], [])
        assert_same(folder / name / "trained", back.prefix)


def test_without_its_optimizer_a_module_takes_the_slots_of_the_original(of_zoo, tmp_path):
    prefix = of_zoo["words"].prefix
    module = migrate.load_model(prefix)
    back = migrate.write_checkpoint(module, tmp_path / "back", original=prefix)
    assert "words/items/Adam" in back.copied and "words/items" not in back.copied
    assert_same(prefix, tmp_path / "back")
