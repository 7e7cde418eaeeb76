"""Plans: which variables are tables, how their rows were dealt, what their slots are."""

import re

import numpy as np
import pytest
import torch

import migrate
from migrate.graph import lookups
from migrate.graph.metagraph import read_graph
from migrate.manifest.transforms import CAST, Loss, cast
from migrate.planning.plan import IdMapping
from migrate.targets.reading import open_target
from semisync.common.errors import BadInput, UsageError
from tests.migrate.table_writer import write_table
from tests.support.conversions import load_all, make_plan, without_graph
from tests.support.require import shared

STRATEGIES = {"user": "mod", "item": "div", "plain/city": None}
FLAVOURS = ["adagrad_ref", "adagrad_resource", "adam_ref", "adam_resource", "sgd"]


def plan_of(folder, name, **options):
    return make_plan(folder / name, **options)


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
    notes = [note for note in plan_of(checkpoints, "adam_ref").notes if "slots named Mine" in note]
    assert len(notes) == 1 and "weight decay" in notes[0]


def test_a_looked_up_vector_is_dense_but_keeps_its_strategy(checkpoints):
    plan = plan_of(checkpoints, "adagrad_ref")
    first = next(one for one in plan.dense if one.variable == "first")
    assert first.partition_strategy == "mod"
    assert any(note.startswith("first is looked up, but") for note in plan.notes)


@pytest.mark.parametrize("graph", [True, False])
def test_a_moving_average_of_a_table_has_its_rows_where_the_table_has_them(
    checkpoints, tmp_path, graph
):
    by_hand = {"tables": "user$", "partition_strategy": "mod"}
    for file in checkpoints.glob("averaged.*"):
        if graph or file.suffix != ".meta":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    plan = plan_of(tmp_path, "averaged", **({} if graph else by_hand))
    assert any("user/ExponentialMovingAverage has the partitions of" in one for one in plan.notes)
    migrate.convert(plan, tmp_path / "out")
    average = load_all(tmp_path / "out", tmp_path / "all.pt")["dense"][
        "user/ExponentialMovingAverage"
    ]
    assert average[:, 0].tolist() == list(range(31))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder of "made": its tables are read by ops that make something of them; "whole.meta" takes
    the partitioned one as a whole."""
    tf = pytest.importorskip("tensorflow").compat.v1
    folder = tmp_path_factory.mktemp("made")

    def graph(parts):
        ids = tf.placeholder(tf.int64, [None], name="ids")
        partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
        divided = tf.get_variable("divided", [8, 4], partitioner=partitioner)
        padded = tf.concat([tf.zeros([1, 4]), tf.get_variable("padded", [7, 4])], 0)
        bags = tf.sparse_placeholder(tf.float32, [None, 8], name="bags")
        factors = tf.get_variable("factors", [8, 4])
        kernel = tf.get_variable("kernel", [4, 4])
        found = tf.nn.embedding_lookup(divided, ids, partition_strategy="mod")
        found += tf.nn.embedding_lookup(padded, ids)
        found += tf.sparse_tensor_dense_matmul(bags, factors)
        return tf.matmul(found, kernel * 2.0)

    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(graph(2)))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(folder / "made"))
    with tf.Graph().as_default():
        graph(1)
        tf.train.export_meta_graph(
            str(folder / "whole.meta"), saver_def=tf.train.Saver().as_saver_def()
        )
    return folder


def test_what_is_looked_up_in_another_matrix_is_dense_and_noted(made):
    plan = plan_of(made, "made")
    assert sorted(tables(plan)) == ["divided", "factors"]
    (note,) = [note for note in plan.notes if "other matrices that it makes of" in note]
    assert "makes of padded, such as" in note


def test_a_table_that_sparse_ids_are_multiplied_by_is_a_weighted_sum(made):
    for meta in (None, made / "whole.meta"):
        factors = tables(plan_of(made, "made", meta=meta))["factors"]
        assert (factors.pooling, factors.weighted) == ("sum", True)


def test_a_graph_that_takes_a_partitioned_table_as_a_whole_has_its_rows_as_they_are_stored(made):
    assert tables(plan_of(made, "made"))["divided"].partition_strategy == "mod"
    whole = tables(plan_of(made, "made", meta=made / "whole.meta"))["divided"]
    assert (whole.partitions, whole.partition_strategy) == (2, "div")


def test_without_a_graph_the_caller_must_name_tables_and_strategy(tf2_checkpoints, tmp_path):
    without_graph(tf2_checkpoints, "adagrad_ref", tmp_path)
    with pytest.raises(UsageError, match="--meta FILE, --tables REGEX, or --no-tables"):
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
        ({"drop": "nothing"}, UsageError, "--drop 'nothing' names none of the 11 tensors"),
        ({"rename": [("usr", "x")]}, UsageError, "--rename 'usr' names no table and no dense"),
    ],
)
def test_what_contradicts_or_lacks_meaning_is_refused(tf2_checkpoints, options, kind, sentence):
    with pytest.raises(kind, match=sentence):
        plan_of(tf2_checkpoints, "adagrad_ref", **options)


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


def test_hash_tables_without_rows_are_dropped_with_the_reason(tmp_path):
    keys = b"\x08\x09\x12\x04\x12\x02\x08\x02\x28\x10"  # int64 [2], 16 bytes
    vector = b"\x08\x01\x12\x04\x12\x02\x08\x02\x28\x08"  # float32 [2], 8 bytes
    matrix = b"\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01\x28\x08"  # float32 [2, 1]
    entries = [(b"", b"\x08\x01"), (b"t-keys", keys), (b"t-values", vector), (b"w", matrix)]
    write_table(tmp_path / "x.index", entries)
    plan = plan_of(tmp_path, "x", tables="w")
    assert set(plan.dropped) == {"t-keys", "t-values"}
    assert "only rows of floats" in plan.dropped["t-keys"]
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
        ("schema: semisync.plan/1", "a Plan lacks source"),
        ("schema: semisync.plan/1\nsource: x\nsource: y", "the field 'source' comes twice"),
        ('schema: semisync.plan/1\nsource: "a\\0b"', "source: .* has a character that no file"),
        ('schema: semisync.plan/1\nsource: "\\ud800"', "source: .* has a character that no file"),
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


# As an earlier version wrote it.
WRITTEN_BEFORE = """\
schema: semisync.plan/1
source: /data/model.ckpt-1
module: ebc
meta: null
newer: null
tables:
- name: user
  variable: deep/user
  rows: 31
  dim: 8
  dtype: float32
  partitions: 3
  partition_strategy: mod
  optimizer: Adagrad
  slots:
    momentum1: deep/user/Adagrad
  hyperparameters:
    learning_rate: 0.1
  cast: null
  row_wise: true
  features: []
  pooling: sum
  weighted: false
  static: null
  placement: uvm
hash_tables:
- name: item
  table: deep/item
  kind: DeepRec
  stored: 20
  dim: 4
  dtype: float32
  ids: mpzch
  rows: 24
  buckets: 2
  duplicates: newest
  optimizer: Adagrad
  slots:
    momentum1: Adagrad
  fill:
    momentum1: 0.1
  hyperparameters: {}
  cast: float16
  features:
  - item
  pooling: mean
  weighted: true
  static: null
  placement: null
dense:
- variable: kernel
  shape:
  - 8
  - 1
  dtype: float32
  name: null
  partition_strategy: null
  optimizer: null
  slots: {}
  hyperparameters: {}
scalars:
- global_step
dropped:
  old: --drop old
notes:
- a note
"""


def test_plans_have_the_keys_that_they_always_had():
    plan = migrate.Plan.from_yaml(WRITTEN_BEFORE)
    user, item = plan.tables
    assert (user.variable, user.rows, user.row_wise, user.ids) == ("deep/user", 31, True, None)
    assert (item.variable, item.rows, item.cast, item.weighted) == (
        "deep/item",
        24,
        "float16",
        True,
    )
    assert item.ids == IdMapping(
        kind="DeepRec",
        stored=20,
        mode="mpzch",
        buckets=2,
        duplicates="newest",
        fill={"momentum1": 0.1},
    )
    assert plan.hash_tables == [item]
    assert re.sub(r"  power: null\n", "", plan.to_yaml()) == WRITTEN_BEFORE


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("  stored: 20\n", "", r"hash_tables\[0\]: a Table lacks stored"),
        ("  ids: mpzch", "  ids: [1]", r"hash_tables\[0\]: ids: expected str, found \[1\]"),
        ("  buckets: 2", "  bucket: 2", r"hash_tables\[0\]: unknown field 'bucket'.*buckets"),
        ("  rows: 31\n", "", r"tables\[0\]: a Table lacks rows"),
        ("  rows: 31", "  rows: null", r"tables\[0\]: rows: expected int, found None"),
        ("  row_wise: true", "  kind: DeepRec", r"tables\[0\]: unknown field 'kind'"),
    ],
)
def test_a_table_that_was_edited_wrongly_is_refused_by_its_place(before, after, sentence):
    with pytest.raises(BadInput, match=sentence):
        migrate.Plan.from_yaml(WRITTEN_BEFORE.replace(before, after))


def test_an_edited_strategy_that_contradicts_the_graph_is_refused(tf2_checkpoints, tmp_path):
    plan = plan_of(tf2_checkpoints, "adagrad_ref")
    for one in [*plan.tables, *plan.dense]:
        if one.variable in ("user", "first"):
            one.partition_strategy = "div"
            sentence = f"'{one.variable}': the plan says partition strategy 'div', .* uses 'mod'"
            with pytest.raises(BadInput, match=sentence):
                migrate.convert(plan, tmp_path / "out")
            plan.meta = None  # the graph beside the checkpoint is asked then
            with pytest.raises(BadInput, match=sentence):
                migrate.convert(plan, tmp_path / "out")
            one.partition_strategy = "mod"
    migrate.convert(plan, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda plan: setattr(plan, "module", "../out"), r"module is '../out'; expected names"),
        (lambda plan: setattr(plan, "module", ""), "module is ''; expected names"),
        (lambda plan: setattr(plan.dense[0], "name", ""), "'dense/kernel' an empty name"),
        (lambda plan: setattr(plan.dense[0], "name", "\udc80"), "is not UTF-8"),
        (
            lambda plan: (
                setattr(plan, "module", "dense"),
                setattr(plan.dense[0], "name", "embedding_bags.user.weight"),
            ),
            "'user' and 'dense/kernel' would both become 'dense.embedding_bags.user.weight'",
        ),
        (
            lambda plan: [one.clear() for one in (plan.tables, plan.dense, plan.scalars)],
            "the plan writes nothing of",
        ),
    ],
)
def test_names_that_the_target_cannot_have_are_refused(tf2_checkpoints, tmp_path, change, sentence):
    plan = plan_of(tf2_checkpoints, "sgd")
    change(plan)
    with pytest.raises(BadInput, match=sentence):
        migrate.convert(plan, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_hash_table_is_written_once(tf2_checkpoints, tmp_path):
    plan = plan_of(tf2_checkpoints, "deeprec")
    plan.tables *= 2
    with pytest.raises(BadInput, match="the plan writes 'user' twice"):
        migrate.convert(plan, tmp_path / "out")


def test_names_are_changed_by_regular_expressions(tf2_checkpoints, tmp_path):
    rename = [("^plain/", "new/"), ("^(user|item)$", r"\1_table"), ("kernel", "weight")]
    plan = plan_of(tf2_checkpoints, "adagrad_ref", rename=rename)
    assert [one.name for one in plan.tables] == ["item_table", "new_city", "user_table"]
    fqns = {one.fqn for one in migrate.convert(plan, tmp_path / "out").tensors}
    assert {"dense.dense/weight", "dense_optim.dense/weight.sum", "dense.first"} <= fqns
    with pytest.raises(UsageError, match="is not a substitution"):
        plan_of(tf2_checkpoints, "adagrad_ref", rename=[("user", r"\2")])
    same = plan_of(tf2_checkpoints, "adagrad_ref", rename=[("^(first|dense/kernel)$", "x")])
    with pytest.raises(BadInput, match="would be named 'x'"):
        migrate.convert(same, tmp_path / "other")


def test_what_is_dropped_is_listed_with_its_reason(tf2_checkpoints, tmp_path):
    plan = plan_of(tf2_checkpoints, "adagrad_ref", drop="^first|city/Adagrad$")
    names = ("first", "first/Adagrad", "plain/city/Adagrad")
    assert plan.dropped == dict.fromkeys(names, "--drop ^first|city/Adagrad$")
    plan.dense = []
    manifest = migrate.convert(plan, tmp_path / "out")
    assert manifest.dropped["dense/kernel"] == "the plan leaves it out"
    assert "first" not in {one.source for one in manifest.tensors}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("target", ["dcp", "safetensors"])
def test_a_cast_rounds_as_torch_does_and_says_what_it_cost(
    tf2_checkpoints, tmp_path, dtype, target
):
    plan = plan_of(tf2_checkpoints, "adagrad_ref", cast=dtype)
    manifest = migrate.convert(plan, tmp_path / "out", target=target)
    reader = open_target(str(tmp_path / "out"), target)
    exact = torch.from_numpy(np.load(tf2_checkpoints / "adagrad_ref.npz")["user"])
    wanted = exact.to(getattr(torch, dtype))
    fqn = "ebc.embedding_bags.user.weight"
    assert torch.equal(reader.rows(fqn, 0, 31), wanted)
    written = next(one for one in manifest.tensors if one.fqn == fqn)
    error = (wanted.double() - exact.double()).abs()
    assert written.dtype == dtype
    assert written.loss.largest == pytest.approx(error.max().item())
    relative = (error.square().sum() / exact.double().square().sum()).sqrt().item()
    assert written.loss.relative == pytest.approx(relative)
    assert 0 < relative < 0.01
    slot = next(one for one in manifest.tensors if one.source == "user/Adagrad")
    assert (slot.dtype, slot.loss) == ("float32", None)


def test_bfloat16_rounds_every_kind_of_float_as_torch_does():
    bits = np.random.RandomState(0).randint(0, 2**32, 100000, np.uint64).astype(np.uint32)
    special = [0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x00000001, 0x3F808000, 0x3F818000, 0x7F7FFFFF]
    values = np.concatenate([bits, np.array(special, np.uint32)]).view(np.float32)
    found = torch.from_numpy(cast(values, "bfloat16").view(np.int16)).view(torch.bfloat16)
    wanted = torch.from_numpy(values).to(torch.bfloat16)
    assert torch.equal(found.isnan(), wanted.isnan())
    assert torch.equal(found.nan_to_num(), wanted.nan_to_num())


def test_a_cast_that_makes_infinities_is_refused(tf2_checkpoints, tmp_path):
    plan = plan_of(tf2_checkpoints, "slices", tables="^columns$")
    plan.tables[0].cast = "float16"  # integers up to 11899: rounded, and none too large
    assert migrate.convert(plan, tmp_path / "fits").tensors[0].loss.overflowed == 0
    values = np.array([[1.0, 70000.0]], np.float32)
    loss = Loss()
    CAST.apply(values, "float16", loss)
    assert (loss.overflowed, loss.largest) == (1, 0.0)
    plan.tables[0].cast = "int8"
    with pytest.raises(BadInput, match="cast 'int8', expected one of float16"):
        migrate.convert(plan, tmp_path / "out")
    with pytest.raises(UsageError, match="cast 'int8'"):
        plan_of(tf2_checkpoints, "adagrad_ref", cast="int8")


def test_row_wise_adagrad_is_the_mean_and_said_to_be_an_approximation(tf2_checkpoints, tmp_path):
    plan = plan_of(tf2_checkpoints, "adagrad_ref")
    for table in plan.tables:
        table.row_wise = True
    manifest = migrate.convert(plan, tmp_path / "out")
    exact = np.load(tf2_checkpoints / "adagrad_ref.npz")["user:accumulator"]
    found = open_target(str(tmp_path / "out"), "dcp").rows(
        "optim.state.ebc.embedding_bags.user.weight.user.momentum1", 0, 31
    )
    assert np.allclose(found.numpy(), exact.mean(1), rtol=1e-6, atol=0)
    assert any("an approximation" in note and "user" in note for note in manifest.notes)
    other = plan_of(tf2_checkpoints, "adam_ref")
    other.tables[0].row_wise = True
    with pytest.raises(BadInput, match="row_wise is for Adagrad, its optimizer is Adam"):
        migrate.convert(other, tmp_path / "other")
