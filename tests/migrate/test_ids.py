"""Raw ids: every id of a hash table finds its own row, and its slots, in the real modules."""

import json
import pathlib
import tempfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import migrate
from migrate.ids import hashing, merging, placing, runs, sorted_tables
from migrate.stream import columns
from migrate.targets.reading.torch_readers import read
from migrate.torchrec import (
    load,
    managed_collision_collection,
)
from migrate.verification import verify
from semisync.cli import main
from semisync.common.errors import BadInput, UsageError
from tests.migrate.plans import edit
from tests.migrate.raw_tables import write_monolith, write_tfra
from tests.support import bundles
from tests.support.conversions import contents, convert, look_up, make_plan, slots_of
from tests.support.programs import killed
from tests.support.require import shared

TFRA = pathlib.Path(__file__).parent / "data" / "tfra"
LARGEST = 2**63 - 1


def sorted_rows(table):
    rows = table.read()
    order = np.argsort(rows.keys)
    return rows.keys[order].astype(np.int64), rows.values[order]


SOURCES = {
    "lookup": (None, "plain", "plain"),
    "lookup_dense": (None, "dense", "dense"),
    "tfra": (TFRA / "TFRADynamicEmbedding", "deep_user", "deep_user"),
    "tfra_in_bundle": (TFRA / "in_bundle", "user/deep_user", "user_deep_user"),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("mode", ["rows", "mch", "mpzch"])
@pytest.mark.parametrize("kind", SOURCES)
def test_the_real_modules_find_every_row_bit_for_bit(tf2_checkpoints, tmp_path, kind, mode):
    path, table, name = SOURCES[kind]
    source = path or tf2_checkpoints / "lookup_tables"
    convert(source, tmp_path / "out", mode)
    ids, rows = sorted_rows(migrate.open_hash_tables(source)[table])
    order = np.random.default_rng(0).permutation(len(ids))
    assert look_up(tmp_path / "out", name, ids[order]).tobytes() == rows[order].tobytes()
    assert verify(str(source), str(tmp_path / "out")).verified


def test_ids_that_are_not_there_get_a_row_of_zeros(tf2_checkpoints, tmp_path):
    for mode in ("rows", "mch"):
        convert(tf2_checkpoints / "lookup_tables", tmp_path / mode, mode)
        absent = [1, 2**40, -1, -2, 7, -LARGEST - 1, LARGEST - 1]  # erased and reserved ones too
        assert not look_up(tmp_path / mode, "dense", absent).any()
    manifest = migrate.read_manifest(tmp_path / "rows")
    assert {one.name: one.ids.count for one in manifest.tables} == {"plain": 5, "dense": 5}
    assert "string keys" in manifest.dropped["words-keys"]


def test_deeprec_rows_slots_and_counts_arrive_under_their_ids(checkpoints, tmp_path):
    source = checkpoints / "deeprec"
    convert(source, tmp_path / "out", "mch")
    (table,) = migrate.open_hash_tables(source).values()
    ids, rows = sorted_rows(table)
    assert look_up(tmp_path / "out", "user", ids).tobytes() == rows.tobytes()
    assert slots_of(tmp_path / "out", "user")["user.momentum1"][:-1].tobytes() == (
        sorted_rows(table.slots["Adagrad"])[1].tobytes()
    )
    prefix = "ebc._managed_collision_collection._managed_collision_modules.user."
    counts = {prefix + "_mch_counts": torch.empty(len(ids) + 1, dtype=torch.int64)}
    read(str(tmp_path / "out"), counts)
    assert counts[prefix + "_mch_counts"].tolist() == [abs(one) % 7 for one in ids.tolist()] + [0]
    manifest = migrate.read_manifest(tmp_path / "out")
    assert any("4 ids that were counted, but not admitted" in note for note in manifest.notes)


def test_slots_follow_their_rows_by_hash_too(tmp_path):
    source = TFRA / "TFRADynamicEmbedding"
    convert(source, tmp_path / "out", "mpzch")
    (table,) = migrate.open_hash_tables(source).values()
    module = managed_collision_collection(str(tmp_path / "out"), {"deep_user": ["f"]}).eval()
    load(module, str(tmp_path / "out"))
    identities = module.state_dict()[
        "_managed_collision_collection._managed_collision_modules.deep_user._hash_zch_identities"
    ].flatten()
    for slot, name in (("Adam_m", "exp_avg"), ("Adam_v", "exp_avg_sq")):
        found = slots_of(tmp_path / "out", "deep_user")[name]
        expected = dict(zip(*sorted_rows(table.slots[slot])))
        for row, one in enumerate(identities.tolist()):
            wanted = expected[one] if one != -1 else np.zeros(4, np.float32)
            assert found[row].tobytes() == wanted.tobytes()


def test_monolith_dumps_convert_with_their_times(tmp_path):
    assets = shared("models", "monolith_hash_tables", "saved_model", "ps_0", "1622716114", "assets")
    name = "MonolithHashTable_0b9721ec6fc5396c38499b5be394b722_0"
    convert(assets / name, tmp_path / "out", "mpzch")
    ids, rows = sorted_rows(migrate.open_hash_tables(assets / name)[name])
    assert look_up(tmp_path / "out", name, ids).tobytes() == rows.tobytes()
    assert slots_of(tmp_path / "out", name)["ftrl_zero"].shape == (3, 1)  # a slot of its own width
    write_monolith(tmp_path / "t", [[(5, [1, 2], 7200)], [(-3, [3, 4], 3599)]])
    manifest = convert(tmp_path / "t", tmp_path / "hours", "mpzch")
    metadata = next(one for one in manifest.tensors if one.fqn.endswith("_hash_zch_metadata"))
    hours = {metadata.fqn: torch.empty(metadata.shape, dtype=torch.int32)}
    read(str(tmp_path / "hours"), hours)
    assert sorted(hours[metadata.fqn].flatten().tolist()) == [0, 2]


@st.composite
def tables(draw):
    """(ids of each partition, mode, buckets): every id once."""
    some = st.one_of(st.integers(-(2**63), LARGEST - 1), st.integers(0, 40))
    ids = draw(st.lists(some.filter(lambda one: one != -1), unique=True, max_size=60))
    cut = draw(st.integers(0, len(ids)))
    return [ids[:cut], ids[cut:]], draw(st.sampled_from(["rows", "mch", "mpzch"]))


@pytest.fixture
def small_pieces(monkeypatch):
    """Runs of 5 rows, blocks of 8: every boundary is met."""
    monkeypatch.setattr(runs, "RUN_BYTES", 5 * (8 + 8))
    monkeypatch.setattr(runs, "STEP", 2)
    monkeypatch.setattr(merging, "STEP", 2)
    monkeypatch.setattr(merging, "BLOCK_ROWS", 8)
    monkeypatch.setattr(placing, "_BLOCK_ROWS", 3)
    monkeypatch.setattr(columns, "FETCH_ROWS", 7)
    monkeypatch.setattr(columns, "BLOCK_BYTES", 16)
    monkeypatch.setattr(runs, "BLOCK_BYTES", 16)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables())
@example(([[-(2**63), LARGEST - 1, 0], [-2, 1]], "mch"))
@example(([list(range(0, 3 * 61, 3)), []], "mpzch"))
def test_any_ids_in_any_pieces_find_their_rows(small_pieces, table):
    parts, mode = table
    everything = [one for part in parts for one in part]
    rows = np.arange(2 * len(everything), dtype=np.float32).reshape(-1, 2) + 1
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        both = zip(parts, (rows[: len(parts[0])], rows[len(parts[0]) :]))
        write_tfra(folder / "in", "t", list(both))
        if not everything:
            assert "size of a row" in make_plan(folder / "in", mode).dropped["t"]
            return
        convert(folder / "in", folder / "out", mode, verify=False)
        assert look_up(folder / "out", "t", everything).tobytes() == rows.tobytes()
        assert verify(str(folder / "in"), str(folder / "out")).differences == []


def test_many_ids_are_found_within_the_probes_that_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "RUN_BYTES", 1 << 20)
    monkeypatch.setattr(merging, "BLOCK_ROWS", 1 << 13)
    random = np.random.default_rng(3)
    ids = np.unique(random.integers(-(2**63), LARGEST, 100_000))
    random.shuffle(ids)
    rows = random.random((len(ids), 2), np.float32)
    source = write_tfra(tmp_path / "in", "t", [(ids, rows)])
    plan = make_plan(source, "mpzch")
    plan.hash_tables[0].ids.buckets = 5
    plan.hash_tables[0].rows = 105_000
    assert migrate.Plan.from_yaml(plan.to_yaml()) == plan
    manifest = migrate.convert(plan, tmp_path / "out", workers=2)
    (table,) = manifest.tables
    assert table.ids.max_probe > 128  # what the module has by default would not find all
    assert look_up(tmp_path / "out", "t", ids).tobytes() == rows.tobytes()
    module = managed_collision_collection(manifest, {"t": ["f"]})
    managed = module._managed_collision_collection._managed_collision_modules["t"]
    managed._max_probe = table.ids.max_probe - 1
    with pytest.raises(UsageError, match=f"build it with max_probe={table.ids.max_probe}"):
        load(module, str(tmp_path / "out"))


def test_ids_whose_hashes_agree_are_told_apart(small_pieces, tmp_path, monkeypatch):
    monkeypatch.setattr(hashing, "_bits_below", lambda rows: 0)  # of the hash the home row remains
    ids = np.random.default_rng(0).permutation(400)
    rows = np.arange(800, dtype=np.float32).reshape(400, 2)
    state = [(ids[:250][::-1], rows[:250][::-1]), (ids[250:-1], rows[250:-1])]  # all but the last
    parts = [(ids[:250], rows[:250]), (ids[250:], rows[250:])]
    source = write_tfra(tmp_path / "in", "t", parts, [("Adagrad_accumulator", state)])
    convert(source, tmp_path / "out", "mpzch")  # verified
    assert look_up(tmp_path / "out", "t", ids).tobytes() == rows.tobytes()
    one, other = np.flatnonzero(hashing.home_rows(np.arange(100), 3, 1) == 0)[:2]
    source = write_tfra(tmp_path / "twice", "t", [([one, other], rows[:2]), ([one], rows[:1])])
    with pytest.raises(BadInput, match=f"has id {one} twice, in .*1of2"):
        convert(source, tmp_path / "refused", "mpzch")


def test_a_bucket_with_too_many_ids_is_refused(tmp_path):
    ids = np.arange(0, 40, 4)  # all of the first of four buckets
    source = write_tfra(tmp_path / "in", "t", [(ids, np.ones((10, 2)))])
    plan = make_plan(source, "mpzch")
    plan.hash_tables[0].ids.buckets = 4
    with pytest.raises(BadInput, match="bucket 0 has more ids than its 3 rows"):
        migrate.convert(plan, tmp_path / "out")
    plan.hash_tables[0].rows = 14
    with pytest.raises(BadInput, match="14 rows do not divide into 4 buckets"):
        migrate.convert(plan, tmp_path / "out")
    plan.hash_tables[0].rows, plan.hash_tables[0].ids.mode = 10, "mch"
    with pytest.raises(BadInput, match="10 ids, more than the plan's 10 rows"):
        migrate.convert(plan, tmp_path / "out")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in"]


@pytest.mark.parametrize(
    ("mode", "one"), [("mch", LARGEST), ("mpzch", -1), ("dynamicemb", -3), ("rows", None)]
)
def test_an_id_that_means_something_else_to_the_module_is_refused(tmp_path, mode, one):
    ids = [5, LARGEST, -1, -3, -(2**63)]
    source = write_tfra(tmp_path / "in", "t", [(ids, np.arange(10))])
    if one is None:
        convert(source, tmp_path / "out", mode)
        assert look_up(tmp_path / "out", "t", ids).flatten().tolist() == list(range(10))
        return
    ids = [5, one]
    source = write_tfra(tmp_path / "in", "t", [(ids, np.arange(4))])
    with pytest.raises(BadInput, match=f"has the id {one}, by which"):
        convert(source, tmp_path / "out", mode)


def test_an_id_in_two_partitions_is_named_with_both_places(tmp_path):
    parts = [([7, 5], np.ones((2, 2))), ([9, 5], np.ones((2, 2)))]
    source = write_tfra(tmp_path / "in", "t", parts)
    with pytest.raises(BadInput, match=r"has id 5 twice, in .*1of2\S*-keys and in .*2of2\S*-keys"):
        convert(source, tmp_path / "out")
    with pytest.raises(BadInput, match="id 5 twice.*no versions that tell which is newer"):
        migrate.convert(make_plan(source, duplicates="newest"), tmp_path / "out")


@pytest.mark.parametrize("mode", ["rows", "mpzch"])
def test_the_newest_version_of_an_id_wins(tmp_path, mode):
    entries = [[(5, [1, 2], 10), (7, [3, 4], 30)], [(7, [5, 6], 20), (5, [7, 8], 11)]]
    write_monolith(tmp_path / "t", entries)
    plan = make_plan(tmp_path / "t", mode, duplicates="newest")
    assert migrate.Plan.from_yaml(plan.to_yaml()).hash_tables[0].ids.duplicates == "newest"
    manifest = migrate.convert(plan, tmp_path / "out")
    assert manifest.tables[0].ids.duplicates == 2
    assert look_up(tmp_path / "out", "t", [5, 7]).tolist() == [[7, 8], [3, 4]]
    entries[1][0] = (7, [5, 6], 30)
    write_monolith(tmp_path / "t", entries)
    with pytest.raises(BadInput, match="id 7 twice with version 30.*neither is newer"):
        migrate.convert(plan, tmp_path / "tied")


def test_state_goes_with_the_row_that_won_and_what_lacks_it_begins_anew(tmp_path):
    parts = [([1, 2], [[1], [2]]), ([3], [[3]])]
    slots = [([2, 9], [[20], [90]]), ([3], [[30]])]  # none of 1, and one of 9, which has no row
    source = write_tfra(tmp_path / "in", "t", parts, [("Adagrad_accumulator", slots)])
    manifest = convert(source, tmp_path / "out")
    found = slots_of(tmp_path / "out", "t")["t.momentum1"].flatten().tolist()
    assert found == [np.float32(0.1), 20, 30, np.float32(0.1)]
    assert any("1 ids have no momentum1" in note for note in manifest.notes)
    assert any("1 rows of momentum1 belong to no id" in note for note in manifest.notes)
    assert verify(str(source), str(tmp_path / "out")).verified


@pytest.mark.parametrize("mode", ["rows", "mch", "mpzch", "dynamicemb"])
def test_verification_names_the_id_whose_row_or_state_differs(tmp_path, mode):
    def write(rows, state):
        return write_tfra(
            tmp_path / "in",
            "t",
            [([4, -8, 6], rows)],
            [("Adagrad_accumulator", [([4, 6, -8], state)])],
        )

    rows, state = [[1], [2], [3]], [[10], [30], [20]]
    source = write(rows, state)
    convert(source, tmp_path / "out", mode)
    write([[1], [3], [2]], state)
    found = verify(str(source), str(tmp_path / "out"))
    assert found.differing_rows == 2
    assert "2 ids have another values" in found.differences[0]
    assert found.differences[0].endswith("the first is id -8")
    write(rows, [[10], [30], [21]])
    found = verify(str(source), str(tmp_path / "out"))
    assert (found.differing_rows, found.differences[0][-5:]) == (1, "id -8")
    assert not verify(str(source), str(tmp_path / "out"), sample=3).verified
    write_tfra(tmp_path / "in", "t", [([4, -8, 7], rows)], [])
    assert "on one side alone" in verify(str(source), str(tmp_path / "out")).differences[0]


@pytest.mark.parametrize("mode", ["rows", "dynamicemb"])
def test_a_table_without_rows_verifies_until_its_source_has_one(tmp_path, mode):
    def write(ids):
        keys, values = np.array(ids, np.int64), np.ones((len(ids), 2), np.float32)
        names = {"t/t_mht_1of1-keys": keys, "t/t_mht_1of1-values": values}
        return str(bundles.write(tmp_path / "in", names))

    convert(write([]), tmp_path / "out", mode)
    for sample in (None, 3):
        assert verify(write([]), str(tmp_path / "out"), sample=sample).verified
    found = verify(write([4]), str(tmp_path / "out"))
    assert (found.verified, found.differing_rows) == (False, 1)
    assert found.differences[0].endswith("or are on one side alone, the first is id 4")


def test_verification_finds_ids_in_rows_where_the_module_does_not_look(tmp_path, monkeypatch):
    ids = list(range(1, 2000))
    source = write_tfra(tmp_path / "in", "t", [(ids, np.ones((len(ids), 1)))])
    original = placing.ByHash._put

    def shifted(self, homes, columns):
        original(self, np.minimum(homes + 3, self._size - 1), columns)

    monkeypatch.setattr(placing.ByHash, "_put", shifted)
    convert(source, tmp_path / "out", "mpzch", verify=False)
    found = verify(str(source), str(tmp_path / "out"))
    assert "where its module does not find it" in found.differences[0]


def test_damaged_output_is_found(tmp_path):
    source = write_tfra(tmp_path / "in", "t", [([4, -8, 6], np.ones((3, 4)))])
    convert(source, tmp_path / "out", "dynamicemb")
    (path,) = (tmp_path / "out" / "dynamicemb" / "model.ebc").glob("t_emb_values*")
    data = bytearray(path.read_bytes())
    data[5] ^= 1
    path.write_bytes(data)
    assert "SHA-256" in verify(str(source), str(tmp_path / "out")).differences[0]
    path.write_bytes(data[:-1])
    assert "not in the target" in verify(str(source), str(tmp_path / "out")).differences[0]


def test_dynamicemb_gets_its_files(tmp_path):
    convert(TFRA / "TFRADynamicEmbedding", tmp_path / "out", "dynamicemb")
    (table,) = migrate.open_hash_tables(TFRA / "TFRADynamicEmbedding").values()
    ids, rows = sorted_rows(table)
    folder = tmp_path / "out" / "dynamicemb" / "model.ebc"

    def stored(name, dtype):
        return np.fromfile(folder / f"deep_user_{name}.rank_0.world_size_1", dtype)

    assert np.array_equal(stored("emb_keys", "<i8"), ids)
    assert stored("emb_values", "<f4").tobytes() == rows.tobytes()
    assert stored("emb_scores", "<i8").tolist() == [0] * len(ids)
    state = [sorted_rows(table.slots[slot])[1] for slot in ("Adam_m", "Adam_v")]
    assert stored("emb_opt_values", "<f4").tobytes() == np.hstack(state).tobytes()


def test_dynamicemb_gets_the_settings_of_its_optimizer(tmp_path):
    ids, rows = [4, -8, 6], np.ones((3, 4))
    slots = [("Adagrad_accumulator", [(ids, rows)])]
    source = write_tfra(tmp_path / "in", "t", [(ids, rows)], slots)
    plan = make_plan(source, "dynamicemb")
    plan.tables[0].hyperparameters.update(learning_rate=0.05, initial_accumulator_value=0.2)
    manifest = migrate.convert(plan, tmp_path / "out")
    assert not any("nothing tells" in note for note in manifest.notes)
    file = tmp_path / "out" / "dynamicemb" / "model.ebc" / "t_opt_args.json"
    assert json.loads(file.read_text()) == {
        "opt_type": "exact_adagrad",
        "lr": 0.05,
        "eps": 0.0,
        "initial_accumulator_value": 0.2,
    }
    file.write_text('{"opt_type": "exact_adagrad", "lr": 0.1}')
    found = verify(str(source), str(tmp_path / "out"))
    assert found.verified and "t_opt_args.json, which was edited" in found.unchecked[0]
    file.unlink()
    assert "t_opt_args.json" in verify(str(source), str(tmp_path / "out")).differences[0]


def test_what_dynamicemb_needs_of_an_optimizer_and_nothing_tells_is_named(tmp_path):
    manifest = convert(TFRA / "TFRADynamicEmbedding", tmp_path / "out", "dynamicemb")
    assert "nothing tells lr, iters, beta1, beta2, eps of its optimizer" in manifest.notes[-1]


def test_an_interrupted_conversion_goes_on_with_the_tables_it_sorted(tmp_path, monkeypatch):
    source = write_tfra(tmp_path / "in", "t", [([4, -8, 6], np.ones((3, 4)))])

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("migrate.stream.writing._Files.write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            convert(source, tmp_path / "out", "mch")
    assert (tmp_path / ".out.partial" / "ids" / "0.done").exists()
    with pytest.raises(UsageError, match="begun with another plan"):
        convert(source, tmp_path / "out", "rows", resume=True)
    with monkeypatch.context() as patch:
        patch.setattr(sorted_tables, "write_runs", interrupted)  # it must not be asked again
        convert(source, tmp_path / "out", "mch", resume=True)
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        ".metadata",
        "__0_0.distcp",
        "manifest.json",
        "model.json",
    ]
    with monkeypatch.context() as patch:  # after a restart of the machine it is sorted again
        patch.setattr("migrate.stream.writing._Files.write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            convert(source, tmp_path / "again", "mch")
    monkeypatch.setattr(sorted_tables, "_boot", lambda: "another")
    convert(source, tmp_path / "again", "mch", resume=True)
    assert verify(str(source), str(tmp_path / "again")).verified


# Stands still in the third call of a function, for ever.
STOPPING = """
import signal, sys, migrate
from migrate.ids import merging, placing, runs
runs.RUN_BYTES, runs.STEP, merging.STEP, merging.BLOCK_ROWS = 160, 2, 2, 8
owner, name = {"sorting": (runs, "_write_run"), "merging": (placing.ByHash, "put")}[sys.argv[3]]
original, seen = getattr(owner, name), []
def stopping(*arguments):
    seen.append(1)
    if len(seen) == 3:
        print("now", flush=True)
        signal.pause()
    return original(*arguments)
setattr(owner, name, stopping)
with migrate.open_checkpoint(sys.argv[1]) as checkpoint:
    plan = migrate.plan(checkpoint, ids="mpzch")
migrate.convert(plan, sys.argv[2])
"""


@pytest.mark.parametrize("during", ["sorting", "merging"])
@pytest.mark.long
def test_what_kill_9_leaves_of_a_hash_table_is_finished_bit_for_bit(tmp_path, during):
    ids, rows = np.arange(60) ** 3, np.random.default_rng(0).random((60, 3), np.float32)
    parts = [(ids[:25], rows[:25]), (ids[25:], rows[25:])]
    slots = [("Adagrad_accumulator", [(part[::-1], 2 * of_part[::-1]) for part, of_part in parts])]
    source = write_tfra(tmp_path / "in", "t", parts, slots)
    killed(STOPPING, source, tmp_path / "out", during)
    left = {path.name for path in (tmp_path / ".out.partial" / "ids").iterdir()}
    assert "0.done" not in left and ("0-map.rows" in left) == (during == "merging")
    with pytest.raises(UsageError, match="go on with it with --resume"):
        convert(source, tmp_path / "out", "mpzch")
    resumed = convert(source, tmp_path / "out", "mpzch", resume=True)
    whole = convert(source, tmp_path / "whole", "mpzch")
    assert resumed == whole
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_plan_that_does_not_fit_the_table_is_refused(tmp_path):
    slots = [("Adagrad_accumulator", [([4, 6], [[1], [2]])])]
    source = write_tfra(tmp_path / "in", "t", [([4, 6], [[1], [2]])], slots)
    for change, sentence in [
        ({"variable": "u"}, "the plan names the hash table 'u'"),
        ({"dim": 2}, r"float32 \[2\]"),
        ({"mode": "modulo"}, "'modulo', expected one of rows, mch, mpzch, dynamicemb"),
        ({"slots": {"momentum1": "m"}}, "names slot 'm'"),
        ({"fill": {}}, "fill has no value for slot 'momentum1'"),
        ({"fill": {"momentum1": 1e300}}, "fill has 1e.300 for slot 'momentum1'; .* float32 holds"),
        ({"fill": {"momentum1": float("nan")}}, "fill has nan for slot 'momentum1'"),
        (
            {"mode": "dynamicemb", "optimizer": "Ftrl"},
            "keeps the state of Adagrad, Adam, AdamAsync",
        ),
        ({"mode": "dynamicemb", "cast": "float16"}, "dynamicemb's files are float32"),
    ]:
        plan = make_plan(source)
        edit(plan.hash_tables[0], **change)
        with pytest.raises(BadInput, match=sentence):
            migrate.convert(plan, tmp_path / "out")
    with pytest.raises(UsageError, match="ids 'modulo'"):
        make_plan(source, "modulo")


def test_rows_can_be_cast_and_written_as_safetensors(tmp_path):
    pytest.importorskip("safetensors")
    rows = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    source = write_tfra(tmp_path / "in", "t", [([4, -8, 6], rows)])
    for mode in ("rows", "mpzch"):
        plan = make_plan(source, mode, cast="float16")
        migrate.convert(plan, tmp_path / mode, target="safetensors")
        manifest = migrate.read_manifest(tmp_path / mode)
        assert manifest.tables[0].dtype == "float16"
        found = {
            one.fqn: torch.empty(one.shape, dtype=getattr(torch, one.dtype))
            for one in manifest.tensors
        }
        read(str(tmp_path / mode), found)
        weight = found[manifest.tables[0].fqn].float().numpy()
        expected = {tuple(row) for row in rows.astype(np.float16).astype(np.float32).tolist()}
        assert {tuple(row) for row in weight.tolist()} - {(0.0,) * 4} == expected - {(0.0,) * 4}


def run(capsys, *arguments):
    code = main([str(one) for one in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_commands_list_convert_and_verify_raw_ids(tmp_path, capsys):
    source = write_tfra(tmp_path / "in", "t", [([4, -8], np.ones((2, 4))), ([6], np.ones((1, 4)))])
    code, out, _ = run(capsys, "inspect", source)
    assert code == 0 and any(line.split()[:2] == ["t", "3"] for line in out.splitlines())
    assert dict(migrate.open_checkpoint(source)) == {}
    assert list(migrate.open_hash_tables(migrate.open_checkpoint(source))) == ["t"]
    code, out, _ = run(capsys, "convert", source, tmp_path / "out", "--ids", "mpzch", "--dry-run")
    assert code == 0 and "  ids: mpzch\n" in out
    (tmp_path / "plan.yaml").write_text(out.replace("ids: mpzch", "ids: mch"))
    plan = ["--plan", tmp_path / "plan.yaml"]
    code, _, err = run(capsys, "convert", source, tmp_path / "out", *plan, "--ids", "mpzch")
    assert code == 3 and "--ids and --duplicates would" in err
    code, out, _ = run(capsys, "convert", source, tmp_path / "out", *plan)
    assert code == 0 and "hash table t: 3 x 4 float32, TFRA, ids by mch" in out
    assert "zch_size=4" in out and "verified" in out
    code, out, _ = run(capsys, "verify", source, tmp_path / "out")
    assert code == 0 and "verified: 3 rows of 1 tensors agree" in out
    write_tfra(tmp_path / "in", "t", [([4, -8], np.zeros((2, 4))), ([6], np.ones((1, 4)))])
    code, out, _ = run(capsys, "verify", source, tmp_path / "out")
    assert code == 1 and "the first is id -8" in out
    write_tfra(tmp_path / "in", "t", [([4, 6], np.zeros((2, 4))), ([6], np.ones((1, 4)))])
    code, _, err = run(capsys, "convert", source, tmp_path / "twice")
    assert code == 3 and "id 6 twice" in err and "\n" not in err.strip()
