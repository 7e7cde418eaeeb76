"""Plans: which variables are tables, how their rows were dealt, what their slots are."""

import pytest

import migrate
from migrate import lookups
from migrate.graph import read_graph
from semisync.errors import BadInput, UsageError
from tests.migrate.table_writer import write_table
from tests.support.require import shared

STRATEGIES = {"user": "mod", "item": "div", "plain/city": None}
FLAVOURS = ["adagrad_ref", "adagrad_resource", "adam_ref", "adam_resource", "sgd"]


def plan_of(folder, name, **options):
    with migrate.open_checkpoint(folder / name) as checkpoint:
        return migrate.plan(checkpoint, **options)


def tables(plan):
    return {table.variable: table for table in plan.tables}


@pytest.mark.parametrize("name", FLAVOURS)
def test_the_graph_tells_tables_and_partition_strategies(checkpoints, name):
    plan = plan_of(checkpoints, name)
    assert {one: table.partition_strategy for one, table in tables(plan).items()} == STRATEGIES
    assert tables(plan)["plain/city"].name == "plain_city"
    assert (tables(plan)["user"].rows, tables(plan)["user"].dim) == (31, 8)
    assert tables(plan)["user"].partitions == 3
    assert [one.variable for one in plan.dense] == ["dense/kernel", "first"]
    assert "global_step" in plan.scalars
    assert not plan.dropped


@pytest.mark.parametrize("name", FLAVOURS)
def test_a_plan_comes_back_from_yaml_unchanged(checkpoints, name):
    plan = plan_of(checkpoints, name)
    assert migrate.Plan.from_yaml(plan.to_yaml()) == plan


def test_slots_get_the_names_of_the_other_side(checkpoints):
    user = tables(plan_of(checkpoints, "adagrad_ref"))["user"]
    assert (user.optimizer, user.slots) == ("Adagrad", {"momentum1": "user/Adagrad"})
    dense = plan_of(checkpoints, "adagrad_resource").dense[0]
    assert (dense.optimizer, dense.slots) == ("Adagrad", {"sum": "dense/kernel/Adagrad"})
    assert tables(plan_of(checkpoints, "sgd"))["user"].optimizer is None


def test_an_optimizer_of_another_name_is_known_from_its_training_ops(checkpoints):
    user = tables(plan_of(checkpoints, "adam_ref"))["user"]
    assert user.optimizer == "Adam"
    assert user.slots == {"exp_avg": "user/Mine", "exp_avg_sq": "user/Mine_1"}


def test_a_looked_up_vector_is_dense_but_keeps_its_strategy(checkpoints):
    plan = plan_of(checkpoints, "adagrad_ref")
    first = next(one for one in plan.dense if one.variable == "first")
    assert first.partition_strategy == "mod"
    assert any(note.startswith("first is looked up, but") for note in plan.notes)


def test_without_a_graph_the_caller_must_name_tables_and_strategy(tf2_checkpoints, tmp_path):
    for file in tf2_checkpoints.glob("adagrad_ref.[id]*"):
        (tmp_path / file.name).symlink_to(file)
    with pytest.raises(UsageError, match="--meta FILE or --tables REGEX"):
        plan_of(tmp_path, "adagrad_ref")
    with pytest.raises(UsageError, match=r"--partition-strategy div\|mod"):
        plan_of(tmp_path, "adagrad_ref", tables="^user$")
    plan = plan_of(tmp_path, "adagrad_ref", tables="^(user|plain/.*)$", partition_strategy="mod")
    assert {one.variable: one.partition_strategy for one in plan.tables} == {
        "user": "mod",
        "plain/city": None,
    }
    assert plan_of(tmp_path, "adagrad_ref", meta=tf2_checkpoints / "adagrad_ref.meta").tables


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"partition_strategy": "div"}, BadInput, "its look-up uses partition strategy 'mod'"),
        ({"partition_strategy": "rows"}, UsageError, "expected 'div' or 'mod'"),
        ({"tables": "nothing"}, UsageError, "names none of the 6 variables"),
        ({"tables": "^first$"}, UsageError, r"float32 \[31\]; a table is"),
        ({"tables": "("}, UsageError, "not a regular expression"),
        ({"meta": "absent.meta"}, BadInput, "cannot be opened"),
    ],
)
def test_what_contradicts_or_lacks_meaning_is_refused(tf2_checkpoints, options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        plan_of(tf2_checkpoints, "adagrad_ref", **options)


def test_the_graph_of_another_model_is_refused(tf2_checkpoints):
    with pytest.raises(BadInput, match="saves none of the 9000 tensors"):
        plan_of(tf2_checkpoints, "many", meta=tf2_checkpoints / "sgd.meta")


def test_a_file_that_is_no_metagraph_is_refused(tf2_checkpoints, tmp_path):
    (tmp_path / "text.meta").write_text("node { name: 'x' }")
    for path in (tmp_path / "text.meta", tf2_checkpoints / "sgd.index"):
        with pytest.raises(BadInput):
            plan_of(tf2_checkpoints, "sgd", meta=path)


def test_variables_that_share_a_lookup_as_partitions_are_refused(checkpoints):
    with pytest.raises(BadInput, match="'shard_0' is one of several variables"):
        plan_of(checkpoints, "by_hand")
    plan = plan_of(checkpoints, "by_hand", tables="^other$")
    assert [one.variable for one in plan.dense] == ["shard_0", "shard_1"]


def test_a_lookup_in_a_conditional_is_seen(checkpoints):
    assert list(tables(plan_of(checkpoints, "cond_ops"))) == ["table"]


def test_a_variable_that_only_a_function_uses_is_pointed_out(checkpoints):
    plan = plan_of(checkpoints, "cond_functions")
    assert not plan.tables
    assert "functions of the graph use table;" in plan.notes[0]


def test_hash_tables_are_dropped_by_name(tmp_path):
    vector = b"\x08\x01\x12\x04\x12\x02\x08\x02\x28\x08"  # float32 [2], 8 bytes
    matrix = b"\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01\x28\x08"  # float32 [2, 1]
    entries = [(b"", b"\x08\x01"), (b"t-keys", vector), (b"t-values", vector), (b"w", matrix)]
    write_table(tmp_path / "x.index", entries)
    plan = plan_of(tmp_path, "x", tables="w")
    assert set(plan.dropped) == {"t-keys", "t-values"}
    assert [one.variable for one in plan.tables] == ["w"]
    assert "multiple of 4; not so: w (1)" in plan.notes[0]


def test_tables_of_a_third_party_model_are_found():
    folder = shared("models", "movie_recommender_brickhoff")
    plan = plan_of(folder, "save")
    found = sorted(table.variable.rpartition("/")[2] for table in plan.tables)
    assert found == [
        "age_embed_matrix",
        "gender_embed_matrix",
        "job_embed_matrix",
        "movie_categories_embed_matrix",
        "movie_id_embed_matrix",
        "movie_title_embed_matrix",
        "uid_embed_matrix",
    ]
    assert {table.optimizer for table in plan.tables} == {"Adam"}


def test_the_graph_knows_where_each_part_is_stored(tf2_checkpoints):
    saved = lookups.saved_variables(read_graph(str(tf2_checkpoints / "adagrad_resource.meta")))
    assert saved["user/part_2"] == lookups.Saved("user", 21)
    assert saved["plain/city/Adagrad"] == lookups.Saved("plain/city/Adagrad", 0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[", "is not YAML"),
        ("a: 1", "it is not a plan"),
        ("schema: semisync.plan/1", "lacks one of source"),
        ("schema: semisync.plan/1\nsource: 3", "source: expected str, found 3"),
        ("schema: semisync.plan/1\nsource: x\ncolour: red", "unknown field 'colour'"),
        (
            "schema: semisync.plan/1\nsource: x\ntables: [{name: t, rows: many}]",
            r"tables\[0\]: rows: expected int, found 'many'",
        ),
    ],
)
def test_a_plan_that_was_edited_wrongly_is_refused_by_name(text, sentence):
    with pytest.raises(BadInput, match=sentence):
        migrate.Plan.from_yaml(text)
