"""`model.json` is there to be edited: what was edited wrongly is named in a sentence."""

import copy
import json

import pytest

import migrate
from migrate.torchrec import build, build_optimizer, constraints, load, read_model
from semisync.common.errors import BadInput, SemisyncError, UsageError
from tests.migrate.plans import edit
from tests.migrate.raw_tables import write_tfra

IDS, ROWS = [4, -8, 6, 2**40], [[1.0, 2.0, 3.0, 4.0]] * 4
OPTIONAL = {"weighted", "static", "placement", "ids", "module"}  # earlier versions lack them


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A conversion of a table per mode, each with Adagrad's state."""
    folder = tmp_path_factory.mktemp("model_json")
    for name in ("rows", "mch", "mpzch"):
        write_tfra(folder / "in", name, [(IDS, ROWS)], [("Adagrad_accumulator", [(IDS, ROWS)])])
    with migrate.open_checkpoint(folder / "in") as checkpoint:
        plan = migrate.plan(checkpoint)
    for table in plan.tables:
        edit(table, mode=table.name, rows=12, buckets=2, pooling="sum")
        table.hyperparameters["learning_rate"] = 0.1
    migrate.convert(plan, folder / "out")
    return folder / "out"


def paths(value, path=()):
    """The path of every key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            if key != "arguments":  # whose keys are the optimizer's
                yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


def edited(directory, path, change):
    """The config, its key at `path` changed."""
    config = json.loads((directory / "model.json").read_text())
    owner = config
    for key in path[:-1]:
        owner = owner[key]
    change(owner, path[-1])
    return config


def use(config):
    """Everything that is done with a config."""
    module = build(config)
    build(config, fused=True)
    build_optimizer(config, module)
    constraints(config)


def test_a_config_without_a_key_is_refused_by_its_name_or_used_without_it(directory, tmp_path):
    for path in paths(read_model(directory)):
        config = edited(directory, path, lambda owner, key: owner.pop(key))
        (tmp_path / "model.json").write_text(json.dumps(config))
        if path[-1] in OPTIONAL:
            use(read_model(tmp_path))
            continue
        with pytest.raises(BadInput) as error:
            read_model(tmp_path)
        sentence = str(error.value)
        assert sentence.startswith(str(tmp_path / "model.json")) and "\n" not in sentence
        if path != ("schema",):
            assert sentence.endswith(f"lacks {path[-1]}")
            with pytest.raises(BadInput, match=f"the model config.*lacks {path[-1]}"):
                use(config)


@pytest.mark.parametrize("value", [None, "x", 7, 0.5, [], {}, [None], {"x": 1}])
def test_a_value_of_any_other_type_ends_in_a_sentence(directory, tmp_path, value):
    for path in paths(read_model(directory)):
        config = edited(directory, path, lambda owner, key: owner.update({key: value}))
        (tmp_path / "model.json").write_text(json.dumps(config))
        try:
            use(read_model(tmp_path))
        except SemisyncError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "at", [(), ("tables", 0), ("tables", 1, "ids"), ("tables", 0, "optimizer")]
)
def test_an_unknown_key_is_refused_by_its_name(directory, tmp_path, at):
    config = edited(directory, (*at, "colour"), lambda owner, key: owner.update({key: "red"}))
    (tmp_path / "model.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=r"model\.json: .*unknown field 'colour', known are "):
        read_model(tmp_path)
    with pytest.raises(BadInput, match="unknown field 'colour'"):
        build(config)


def test_what_is_built_from_a_checked_config_is_filled(directory):
    config = read_model(directory)
    before = copy.deepcopy(config)
    module = build(config)
    assert len(load(module, str(directory))) >= 3
    assert config == before


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("optimizer", "class"), "torch.optim.Nothing", "is not one that a conversion names"),
        (("optimizer", "class"), "Adagrad", "is not one that a conversion names"),
        (("optimizer", "class"), "strange.Optimizer", "is not one that a conversion names"),
        (("optimizer", "arguments"), {"lr": 0.1, "colour": 1}, "does not take the arguments"),
        (("placement",), "tape", "placement 'tape', expected device, uvm or cpu"),
    ],
)
def test_values_that_name_nothing_are_refused(
    directory, tmp_path, monkeypatch, path, value, sentence
):
    (tmp_path / "strange.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(str(tmp_path))
    change = ("tables", 0, *path)
    config = edited(directory, change, lambda owner, key: owner.update({key: value}))
    with pytest.raises(UsageError, match=sentence):
        use(config)
    assert not (tmp_path / "ran").exists()
