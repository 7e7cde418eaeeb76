"""Broken files are named, and skipped only where asked; then the others are all read."""

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from migrate.data import Column, Shuffle, open_data
from parity.io.damage import Broken
from semisync.common.errors import BadInput, SemisyncError

SCHEMA = [Column("row", "key"), Column("id", "ids")]


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        rows = range(100 * number, 100 * number + 100)
        content = pa.table({"row": rows, "id": rows})
        more = {"compression": "zstd", "use_dictionary": False}
        pq.write_table(content, tmp_path / f"{number}.parquet", row_group_size=25, **more)
    return tmp_path


def damage(path, group):
    """Overwrites what a row group holds of the first column."""
    column = pq.ParquetFile(path).metadata.row_group(group).column(0)
    data = bytearray(path.read_bytes())
    start = column.data_page_offset + 20
    data[start : start + 40] = bytes(255 - byte for byte in data[start : start + 40])
    path.write_bytes(data)


def keys(data):
    return [key for batch in data for key in batch.keys["row"].to_pylist()]


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1" + bytes(100), b"ORC" + bytes(100), None])
def test_a_file_that_cannot_be_opened_is_named_or_skipped(folder, content):
    path = folder / "1.parquet"
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    with pytest.raises(Broken, match=f"{path} cannot be read, it may be cut short or corrupt"):
        open_data(folder, SCHEMA, 10, last="pad")
    data = open_data(folder, SCHEMA, 10, last="pad", on_broken="skip")
    assert keys(data) == [*range(100), *range(200, 300)]
    assert [(file, rows) for file, rows, _ in data.skipped] == [(str(path), None)]


@pytest.mark.parametrize("shuffle", [None, Shuffle(1, 110)])
def test_of_a_damaged_row_group_its_rows_alone_are_skipped(folder, shuffle, caplog):
    damage(folder / "1.parquet", 2)
    with pytest.raises(Broken, match="1.parquet cannot be read"):
        keys(open_data(folder, SCHEMA, 16, last="pad", shuffle=shuffle))
    data = [
        open_data(
            folder, SCHEMA, 16, last="pad", shuffle=shuffle, on_broken="skip", rank=k, ranks=2
        )
        for k in range(2)
    ]
    batches = [list(one) for one in data]
    assert len(batches[0]) == len(batches[1]) == 10
    found = [key for one in batches for batch in one for key in batch.keys["row"].to_pylist()]
    assert sorted(found) == [*range(150), *range(175, 300)]
    assert all(batch.sparse.stride() == 16 for one in batches for batch in one)
    skipped = {(file, rows) for one in data for file, rows, _ in one.skipped}
    assert skipped == {(str(folder / "1.parquet"), 25)}
    assert "25 rows were skipped" in caplog.text


def test_files_that_are_all_broken_are_refused_even_where_they_may_be_skipped(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        BadInput, match="every one of the 1 files is broken; the first: .*a.parquet"
    ):
        open_data(tmp_path, SCHEMA, 1, last="pad", on_broken="skip")


def test_a_file_that_changes_or_goes_while_it_is_used_is_refused(folder):
    data = open_data(folder, SCHEMA, 10, last="pad", on_broken="skip")
    pq.write_table(pa.table({"row": [1], "id": [2]}), folder / "1.parquet")
    with pytest.raises(BadInput, match="1.parquet has 1 rows where 25 were listed; it changed"):
        keys(data)
    (folder / "1.parquet").unlink()
    with pytest.raises(BadInput, match="1.parquet does not exist, or no longer does"):
        keys(data)


def test_values_of_the_wrong_kind_are_refused_even_where_broken_files_may_be_skipped(folder):
    pq.write_table(pa.table({"row": [1], "id": ["a"]}), folder / "3.parquet")
    with pytest.raises(BadInput, match="column 'id' in row 1 is 'a'; int64"):
        keys(open_data(folder, SCHEMA, 10, last="pad", on_broken="skip"))


def test_keys_of_different_types_are_refused_rather_than_mixed(folder):
    unsigned = pa.table({"row": pa.array([300], pa.uint32()), "id": [1]})
    pq.write_table(unsigned, folder / "3.parquet")
    assert keys(open_data(folder, SCHEMA, 400, last="pad")) == list(range(301))
    pq.write_table(pa.table({"row": ["a"], "id": [1]}), folder / "3.parquet")
    with pytest.raises(
        BadInput, match="3.parquet: column 'row' holds large_string, but int64 in .*0"
    ):
        keys(open_data(folder, SCHEMA, 400, last="pad", readers=1))


def test_damage_anywhere_in_an_orc_file_ends_in_a_sentence_or_in_the_right_rows(tmp_path):
    path = tmp_path / "log.orc"
    rows = list(range(2000))
    pyarrow.orc.write_table(pa.table({"row": rows, "id": rows}), path, compression="zlib")
    whole = path.read_bytes()
    for place in range(len(whole) - 250, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x15
        path.write_bytes(damaged)
        try:
            found = keys(open_data(path, SCHEMA, 500, last="pad"))
        except SemisyncError as error:
            assert str(path) in str(error)
        else:
            assert len(found) == 2000
