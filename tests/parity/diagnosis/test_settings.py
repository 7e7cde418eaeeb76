"""A file of settings, ids, and errors of one sentence."""

import numpy as np
import pytest

import parity
from migrate.facts import slot_samples
from migrate.facts.read import check_source, read_facts
from parity.diagnosis.facts import matching_table
from parity.inputs.checks import Column
from parity.inputs.ids import to_ids
from semisync.common.errors import BadInput


def write(folder, text, name="s.yaml"):
    path = folder / name
    path.write_text(text)
    return str(path)


def test_yaml_and_json_say_the_same(tmp_path):
    yaml = write(
        tmp_path,
        "optimizer: {name: Adagrad, learning_rate: 0.05, epsilon: 1e-8}\n"
        "batch_norm: {momentum: 0.99}\ncombiner: mean\n",
    )
    json = write(
        tmp_path,
        '{"optimizer": {"name": "Adagrad", "learning_rate": 0.05, "epsilon": 1e-8},'
        ' "batch_norm": {"momentum": 0.99}, "combiner": {"": "mean"}}',
        "s.json",
    )
    for path in (yaml, json):
        facts = read_facts(path)
        assert facts.optimizer == "Adagrad"
        assert facts.settings == {"learning_rate": 0.05, "epsilon": 1e-8}
        assert (facts.batch_norm, facts.combiners) == ({"momentum": 0.99}, {"": "mean"})


def test_settings_go_before_those_of_the_model_that_they_name(tensorflow_models, tmp_path):
    path = write(tmp_path, f"model: {tensorflow_models}/baseline\noptimizer: {{learning_rate: 3}}")
    check_source(path)
    facts = read_facts(path)
    assert (facts.optimizer, facts.settings["learning_rate"]) == ("Adagrad", 3)
    assert facts.settings["initial_accumulator_value"] == 0.1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("optimiser: {}", "unknown part 'optimiser', known are optimizer, batch_norm"),
        ("optimizer: Adagrad", "optimizer is 'Adagrad'; names with their values"),
        ("optimizer: {name: 3}", "the optimizer's name is 3"),
        ("optimizer: {epsilon: small}", "epsilon is 'small', not a finite number"),
        ("optimizer: {epsilon: .nan}", "epsilon is nan, not a finite number"),
        ("combiner: max", "combiner 'max'; expected one of sum, mean, sqrtn"),
        ("combiner: [sum]", "expected one of sum, mean, sqrtn"),
        ("model: other.yaml", "a checkpoint or converted directory is expected"),
        ("model: absent", "there is no checkpoint"),
        ("model: memory://bucket/model", "and no server is asked that you did not name"),
        ("[1, 2]", "has no settings"),
        ("a: [", "is not YAML"),
        ("optimizer: {epsilon: 1.0, epsilon: 2.0}", "the field 'epsilon' comes twice"),
    ],
)
def test_what_is_wrong_in_settings_is_named(tmp_path, text, sentence):
    path = write(tmp_path, text)
    for read in (read_facts, check_source):
        with pytest.raises(BadInput) as error:
            read(path)
        assert sentence in str(error.value)
        assert "\n" not in str(error.value)


def test_settings_that_are_not_there(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_facts(str(tmp_path / "none.yaml"))
    with pytest.raises(BadInput, match="is not JSON"):
        read_facts(write(tmp_path, "{", "s.json"))


def test_ids_come_one_or_several_a_row():
    column = Column("user")
    one = to_ids(np.array([5, 6, 7]), column)
    assert (one.rows, one.values.tolist(), one.lengths) == (3, [5, 6, 7], None)
    several = to_ids([[5, 6], [], [7]], column)
    assert several.values.tolist() == [5, 6, 7]
    assert several.lengths.tolist() == [2, 0, 1]
    assert several.row_numbers().tolist() == [0, 0, 2]
    assert several.rows_with(several.values == 6).tolist() == [True, False, False]
    taken = several.take(np.array([2, 0, 0]))
    assert (taken.values.tolist(), taken.lengths.tolist()) == ([7, 5, 6, 5, 6], [1, 2, 2])
    words = to_ids([["a"], ["b", "c"]], column)
    assert words.values.tolist() == ["a", "b", "c"]
    for wrong in ([0.5, 1.5], [[0.5], [1, 2]], [None, 3]):
        with pytest.raises(BadInput, match="user"):
            to_ids(wrong, column)


def test_rows_of_weight_zero_take_their_ids_and_parts_with_them(bench):
    shifted = 1 / (1 + np.exp(-np.log(bench.scores / (1 - bench.scores)) - 3))
    candidate = np.where(bench.days == 4, shifted, bench.scores)
    weight = (bench.days != 4).astype(float)
    weight[0] = 0
    found = parity.compare(bench.test.label, bench.scores, candidate, margin=1e-9)
    found = parity.diagnose(
        found, bench.test.label, bench.scores, candidate, weight,
        parts={"day": bench.days}, ids=bench.ids,
    )  # fmt: skip
    assert found.diagnosis == (), "what differs has no weight"


def test_a_column_of_another_length_is_refused(bench):
    found = parity.compare(bench.test.label, bench.scores, 1 - bench.scores)
    columns = (bench.test.label, bench.scores, 1 - bench.scores)
    for more in ({"ids": {"user": bench.test.user[1:]}}, {"parts": {"day": bench.days[1:]}}):
        with pytest.raises(BadInput, match="19999 rows, but there are 20000"):
            parity.diagnose(found, *columns, **more)


def test_tables_are_matched_by_a_part_of_their_path():
    assert matching_table("user", ["deep/user/embedding_weights", "deep/item"]) == (
        "deep/user/embedding_weights"
    )
    assert matching_table("deep_user", ["deep/user", "user"]) is None
    assert matching_table("user", ["user", "deep/user"]) == "user"
    assert matching_table("us", ["user"]) is None
    assert matching_table("", ["user"]) is None


def test_the_typical_accumulator_is_sampled_in_bounded_memory(monkeypatch):
    """Three million accumulators from 0.1 on, of which a third was trained to 4."""
    monkeypatch.setattr(slot_samples, "_SAMPLE", 1000)
    state = slot_samples.SlotSample("Adagrad")
    for _ in range(30):
        chunk = np.full((10_000, 10), 0.1, np.float32)
        chunk[::3] = 4
        state.add(chunk)
        assert len(state._values) <= 1000
    assert state.settings() == {"initial_accumulator_value": 0.1}
    assert state.initial == (0.1,)
    assert state.denominator() == 4
    assert slot_samples.SlotSample("Adagrad").denominator() is None
    slots = [iter([np.float32([[0.1, 0.1], [0.1, 4], [0.1, 4]])])]
    cold = slot_samples.cold_rows([np.float32([[1, 1], [1, 1], [0, 0]])], slots, state.initial)
    assert cold.tolist() == [True, False, True]
