"""Hash tables of every format: each id with its own row, whatever the order."""

import pathlib
import shutil
import struct

import numpy as np
import pytest

import migrate
from migrate.hash_tables.whole_tables import with_tables
from migrate.inspection.listing import describe
from semisync.common.errors import BadInput, UsageError
from semisync.encoding.crc32c import masked_value
from tests.migrate.raw_tables import framed, write_hugectr, write_sok, write_tfra
from tests.migrate.table_writer import varint, write_table
from tests.support.bundles import write
from tests.support.conversions import without_graph
from tests.support.require import shared

TFRA = pathlib.Path(__file__).parent / "data" / "tfra"
IDS = [5, -7, 2**40, 0, 6, 8, -(2**50)]
KEPT = {
    key: [3.0 * at, 3.0 * at + 1, 3.0 * at + 2] for at, key in enumerate(IDS) if at not in (2, 3)
}


def by_id(table, rows_per_chunk=3):
    found = {}
    for rows in table.chunks(rows_per_chunk):
        assert len(rows.keys) <= rows_per_chunk
        for key, value in zip(rows.keys.tolist(), rows.values.tolist()):
            assert key not in found
            found[key] = value
    return found


def test_tables_of_contrib_lookup_without_their_free_and_erased_buckets(checkpoints):
    tables = migrate.open_hash_tables(checkpoints / "lookup_tables")
    assert by_id(tables["plain"]) == KEPT
    assert by_id(tables["dense"], 1000) == KEPT
    assert by_id(tables["words"]) == {b"a": 1, b"\xff\x00b": 2, b"": 3}
    kinds = {name: table.kind for name, table in tables.items()}
    assert kinds["dense"] == "MutableDenseHashTable"
    assert kinds["plain"] == kinds["words"] == "MutableHashTable"


def test_a_dense_table_needs_its_sentinels(tf2_checkpoints, tmp_path):
    prefix = without_graph(tf2_checkpoints, "lookup_tables", tmp_path)
    with pytest.raises(BadInput, match="give the MetaGraph or the sentinels"):
        migrate.open_hash_tables(prefix)["dense"].read()
    given = {"dense": migrate.Sentinels(-1, -2)}
    assert by_id(migrate.open_hash_tables(prefix, sentinels=given)["dense"], 1000) == KEPT
    with pytest.raises(BadInput, match="no hash table 'dnese'"):
        migrate.open_hash_tables(prefix, sentinels={"dnese": migrate.Sentinels(-1, -2)})


def test_deeprec_parts_slots_filtered_ids_and_counts(checkpoints):
    (table,) = migrate.open_hash_tables(checkpoints / "deeprec").values()
    ids = [2, 1002, 4, -6, 7, 1009, 3]
    assert (table.name, table.kind, table.stored) == ("user", "DeepRec", 7)
    assert by_id(table) == {key: [key + 0.5] * 4 for key in ids}
    assert by_id(table.slots["Adagrad"]) == {key: [np.float32(key + 0.1).item()] * 4 for key in ids}
    rows = table.read()
    assert rows.versions is None  # stored as [0]
    assert rows.freqs.tolist() == [abs(key) % 7 for key in rows.keys.tolist()]
    with pytest.raises(BadInput, match="'user' is not of contrib.lookup: it has no sentinels"):
        name = table.parts[0].columns.keys[: -len("-keys")]
        migrate.open_hash_tables(
            checkpoints / "deeprec", sentinels={name: migrate.Sentinels(-1, -2)}
        )
    filtered = table.filtered.read()
    assert (sorted(filtered.keys.tolist()), filtered.values) == ([10, 11, 20, 21], None)


def test_a_deeprec_increment_goes_on_top_of_the_full_checkpoint(checkpoints):
    full, newer = checkpoints / "deeprec", checkpoints / "deeprec_incr"
    (table,) = migrate.open_hash_tables(full, newer=newer).values()
    rows = by_id(table)
    assert set(rows) == {2, 1002, 4, -6, 7, 1009, 3, 11}
    assert (rows[1009][0], rows[11][0], rows[7][0]) == (1109.0, 111.0, 7.5)
    assert by_id(table.slots["Adagrad"])[11] == [20.0] * 4
    assert 11 not in table.filtered.read().keys
    with pytest.raises(BadInput, match="belongs to no table of the full checkpoint"):
        migrate.open_hash_tables(checkpoints / "lookup_tables", newer=newer)


def test_deeprec_with_an_ssd_tier_is_refused_with_the_reason(tf2_checkpoints, tmp_path):
    prefix = without_graph(tf2_checkpoints, "deeprec", tmp_path)
    (tmp_path / "deeprec-user_part_1-ssd_record.index").touch()
    with pytest.raises(BadInput, match="SSD files"):
        migrate.open_hash_tables(prefix)


@pytest.mark.parametrize("source", ["in_bundle", "TFRADynamicEmbedding"])
def test_tfra_tables_are_what_tfra_exports(source):
    (table,) = migrate.open_hash_tables(TFRA / source).values()
    expected = np.load(TFRA / "tables.npz")
    rows = table.read()
    order = np.argsort(rows.keys)
    assert len(table.parts) == 2
    assert np.array_equal(rows.keys[order], expected["keys"])
    assert rows.values[order].tobytes() == expected["values"].tobytes()
    assert set(table.slots) == {"Adam_m", "Adam_v"}
    moments = by_id(table.slots["Adam_m"])
    assert set(moments) == set(rows.keys.tolist())
    assert moments[0] == pytest.approx([0.1] * 4)  # 1 - beta1 times the gradient 2 x 0.5


def test_tfra_in_a_bundle_and_beside_it_agree():
    (bundle,) = migrate.open_hash_tables(TFRA / "in_bundle").values()
    (beside,) = migrate.open_hash_tables(TFRA / "TFRADynamicEmbedding").values()
    for slot in ("Adam_m", "Adam_v"):
        assert by_id(bundle.slots[slot]) == by_id(beside.slots[slot])


def test_tfra_files_that_do_not_fit_together_are_refused(tmp_path):
    folder = tmp_path / "tables"
    shutil.copytree(TFRA / "TFRADynamicEmbedding", folder)
    first = folder / "deep_user_mht_1of2_rank0_size1-values"
    whole = first.read_bytes()
    first.write_bytes(whole[:-4])
    with pytest.raises(BadInput, match="no float32 rows of one size"):
        migrate.open_hash_tables(folder)
    first.write_bytes(whole)
    with pytest.raises(BadInput, match="not a numeric data type"):
        migrate.open_hash_tables(folder, dtype="string")
    (folder / "deep_user_mht_2of2_rank0_size1-keys").unlink()
    with pytest.raises(BadInput, match="some are missing"):
        migrate.open_hash_tables(folder)


def monolith_assets():
    return shared("models", "monolith_hash_tables", "saved_model", "ps_0", "1622716114", "assets")


@pytest.mark.parametrize("inside", [True, False])
def test_slots_of_tfra_tables_that_are_named_alike_are_told_apart_or_refused(tmp_path, inside):
    """TFRA 0.6.0 writes X/a_X and m/a_X_Adam_m of a/X; a_X/a_X and m_1/a_X_Adam_m of a_X."""
    places = {"X/a_X": "X" if inside else "m", "a_X/a_X": "a_X" if inside else "m_1"}
    tensors = {}
    for number, (table, scope) in enumerate(places.items()):
        for name in (table, f"{scope}/a_X_Adam_m"):
            tensors[f"{name}_mht_1of1-keys"] = np.array([number])
            tensors[f"{name}_mht_1of1-values"] = np.full((1, 2), number, np.float32)
    prefix = write(tmp_path / "model", tensors)
    if not inside:
        with pytest.raises(BadInput, match="'m/a_X_Adam_m' is Adam_m of 'X/a_X' or of 'a_X/a_X'"):
            migrate.open_hash_tables(prefix)
        return
    found = migrate.open_hash_tables(prefix)
    rows = {name: by_id(table.slots["Adam_m"]) for name, table in found.items()}
    assert rows == {"X/a_X": {0: [0, 0]}, "a_X/a_X": {1: [1, 1]}}


def test_a_slot_that_a_tfra_table_has_twice_is_refused(tmp_path):
    names = ["X/a_X", "m/a_X_Adam_m", "m_1/a_X_Adam_m"]
    keys = {f"{name}_mht_1of1-keys": np.array([1]) for name in names}
    values = {f"{name}_mht_1of1-values": np.ones((1, 2), np.float32) for name in names}
    with pytest.raises(BadInput, match="'m/.*' and 'm_1/.*' are both Adam_m of 'X/a_X'"):
        migrate.open_hash_tables(write(tmp_path / "model", {**keys, **values}))


def test_parts_whose_ids_are_of_different_types_are_refused(tmp_path):
    tensors = {}
    for part, dtype in (("t_mht_1of2", np.int64), ("t_mht_2of2", np.int32)):
        tensors[f"{part}-keys"] = np.array([1], dtype)
        tensors[f"{part}-values"] = np.ones((1, 2), np.float32)
    with pytest.raises(BadInput, match="'t': its parts have ids or rows of different types"):
        migrate.open_hash_tables(write(tmp_path / "model", tensors))


def test_monolith_dumps_read_as_their_protos_say():
    assets = monolith_assets()
    tables = migrate.open_hash_tables(assets)
    assert len(tables) == 20
    name = "MonolithHashTable_0b9721ec6fc5396c38499b5be394b722_0"
    table = tables[name]
    assert set(by_id(table)) == {15, 10, 0}
    data = (assets / (name + "-00000-of-00004")).read_bytes()
    # the first record by hand: 12 bytes of head, 9 of id, then tag and float in turn
    row = [struct.unpack_from("<f", data, 12 + 9 + 5 * at + 1)[0] for at in range(33)]
    assert by_id(table)[15] == row
    zero, norm = struct.unpack("<f", data[193:197]), struct.unpack("<f", data[198:202])
    assert by_id(table.slots["ftrl_zero"])[15] + by_id(table.slots["ftrl_norm"])[15] == [
        *zero,
        *norm,
    ]
    assert migrate.open_hash_tables(assets / name)[name] == table


def test_a_damaged_or_incomplete_monolith_dump_is_refused(tmp_path):
    name = "MonolithHashTable_0b9721ec6fc5396c38499b5be394b722_0"
    for file in monolith_assets().glob(name + "*"):
        shutil.copyfile(file, tmp_path / file.name)
    first = tmp_path / (name + "-00000-of-00004")
    data = bytearray(first.read_bytes())
    data[40] ^= 1
    first.write_bytes(data)
    with pytest.raises(BadInput, match="record 1 is corrupt, its checksum"):
        migrate.open_hash_tables(tmp_path)
    first.unlink()
    with pytest.raises(BadInput, match="not all there"):
        migrate.open_hash_tables(tmp_path)


@pytest.fixture
def several(tmp_path):
    """A dump of two tables in two files, its records written by TensorFlow."""
    from tensorflow.python.lib.io._pywrap_record_io import RecordWriter, RecordWriterOptions

    def entry(key, row):
        return struct.pack("<Bq", 9, key) + b"".join(struct.pack("<Bf", 21, x) for x in row)

    def write(name, compression, found):
        writer = RecordWriter(str(tmp_path / name), RecordWriterOptions(compression))
        for record in found:
            writer.write(record)
        writer.close()

    counts = [{"user": 3000, "item": 2}, {"user": 0, "item": 1}]
    for shard, of_shard in enumerate(counts):
        metas, entries = [], []
        for table, count in of_shard.items():
            metas.append(b"\x0a\x04" + table.encode() + b"\x10" + varint(count))
            width = 2 if table == "item" else 30
            entries += [entry(10 * k + shard, [k + 0.5] * width) for k in range(count)]
        write(f"all-0000{shard}-of-00002", "SNAPPY", entries)
        write(f"all.meta-0000{shard}-of-00002", "", metas)
    return tmp_path


def test_a_monolith_dump_of_several_tables_is_read_table_by_table(several):
    for path in (several, several / "all"):
        tables = migrate.open_hash_tables(path)
        assert {name: table.stored for name, table in tables.items()} == {"user": 3000, "item": 3}
        assert by_id(tables["item"]) == {0: [0.5] * 2, 10: [1.5] * 2, 1: [0.5] * 2}
        assert by_id(tables["user"]) == {10 * k: [k + 0.5] * 30 for k in range(3000)}


def test_a_monolith_dump_of_several_tables_must_be_whole(several):
    data = several / "all-00000-of-00002"
    content = data.read_bytes()
    data.write_bytes(content[:-5])
    with pytest.raises(BadInput, match="snappy block"):
        migrate.open_hash_tables(several)
    damaged = bytearray(content)
    damaged[5000] ^= 1
    data.write_bytes(damaged)
    with pytest.raises(BadInput):
        migrate.open_hash_tables(several)
    data.write_bytes((several / "all-00001-of-00002").read_bytes())
    with pytest.raises(BadInput, match="has 1 entries, .* tells of more"):
        migrate.open_hash_tables(several)
    data.write_bytes(content * 2)
    with pytest.raises(BadInput, match="has more than the 3002 entries"):
        migrate.open_hash_tables(several)
    for file in several.glob("all-*"):
        file.unlink()
    with pytest.raises(BadInput, match="is not there"):
        migrate.open_hash_tables(several)


@pytest.mark.parametrize(
    ("file", "server"), [("s0/replica_0_shard_12.emb", "PERSIA"), ("user$embedding^3", "XDL")]
)
def test_dumps_without_a_description_are_refused_by_name(tmp_path, file, server):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(b"x")
    with pytest.raises(BadInput, match=f"dump of {server}'s servers"):
        migrate.open_hash_tables(tmp_path)


def test_a_checkpoint_of_xdl_is_one_of_tensorflow():
    with migrate.open_checkpoint(shared("models", "xdl_blaze_model") / "model.ckpt") as checkpoint:
        assert len(migrate.plan(checkpoint).dense) == len(checkpoint) == 12


def test_a_monolith_entry_of_another_width_is_refused(tmp_path):
    def entry(key, row):
        return framed(struct.pack("<Bq", 9, key) + b"".join(struct.pack("<Bf", 21, x) for x in row))

    path = tmp_path / "t-00000-of-00001"
    path.write_bytes(entry(1, [1, 2]) + entry(-2, [3, 4]))
    assert by_id(migrate.open_hash_tables(tmp_path / "t")["t"]) == {1: [1, 2], -2: [3, 4]}
    path.write_bytes(entry(1, [1, 2]) + entry(2, [3]))
    with pytest.raises(BadInput, match="id 2 has 1 numbers in its row, others 2"):
        migrate.open_hash_tables(tmp_path)["t"].read()


def test_hugectr_files_are_keys_and_rows(tmp_path):
    folder = write_hugectr(tmp_path / "dcn0_sparse_100.model", [7, 3], np.arange(6))
    assert by_id(migrate.open_hash_tables(folder)[folder.name]) == {7: [0, 1, 2], 3: [3, 4, 5]}


def test_sok_files_are_read_by_their_meta_info(tmp_path):
    table = migrate.open_hash_tables(write_sok(tmp_path, "user", [7, 3, 9], np.arange(6)))["user"]
    assert by_id(table) == {7: [0, 1], 3: [2, 3], 9: [4, 5]}
    assert by_id(table.slots["Adam_m"])[9] == [14, 15]
    weight = tmp_path / "user-weight"
    weight.write_bytes(weight.read_bytes()[:-4])
    with pytest.raises(BadInput, match="not the 3 rows"):
        migrate.open_hash_tables(tmp_path)


def test_variables_that_are_only_named_like_a_hash_table_are_none(tmp_path):
    """The projections of an attention layer, for example."""
    shape = b"\x12\x08\x12\x02\x08\x02\x12\x02\x08\x03"  # [2, 3]
    crc = b"\x35" + masked_value(bytes(24)).to_bytes(4, "little")
    entry = b"\x08\x01" + shape + b"\x28\x18" + crc
    entries = [(b"", b"\x08\x01"), (b"a-keys", entry), (b"a-values", entry)]
    write_table(tmp_path / "x.index", entries)
    (tmp_path / "x.data-00000-of-00001").write_bytes(bytes(24))
    assert migrate.open_hash_tables(tmp_path / "x") == {}
    with migrate.open_checkpoint(tmp_path / "x") as checkpoint:
        found = describe(checkpoint)["variables"]
        assert [one["name"] for one in found] == ["a-keys", "a-values"]


def test_an_unknown_path_is_named(tmp_path):
    with pytest.raises(BadInput, match="is a directory"):
        migrate.open_hash_tables(tmp_path)
    with pytest.raises(UsageError, match="rows_per_chunk is 0"):
        next(migrate.open_hash_tables(TFRA / "in_bundle")["user/deep_user"].chunks(0))


def test_of_ids_that_lack_a_slot_a_whole_table_has_its_first_value(tmp_path):
    prefix = tmp_path / "model"
    marks = [f"{name}_mht_1of1-shard_upsert_restore" for name in ("t", "t_Adagrad_accumulator")]
    write(prefix, dict.fromkeys(marks, np.float32(0)))
    slots = [("Adagrad_accumulator", [([9, 2], [[90], [20]])])]  # one of an id without a row
    folder = tmp_path / "TFRADynamicEmbedding"
    write_tfra(folder, "t", [([5, 2, 1], [[5], [2], [1]])], slots)
    with migrate.open_checkpoint(prefix) as checkpoint:
        whole = with_tables(checkpoint)
        assert whole.read("t").flatten().tolist() == [1, 2, 5]
        begun = np.float32(0.1)
        assert whole.read("t_Adagrad_accumulator").flatten().tolist() == [begun, 20, begun]
