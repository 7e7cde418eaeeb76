"""The index that is written is TensorFlow's own, byte for byte."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import migrate
from migrate.to_tensorflow.write import write_index
from semisync.encoding import sstable_writing
from semisync.encoding.sstable import read_table
from semisync.encoding.sstable_writing import TableWriter


def prefixes(folder):
    return sorted(str(path)[: -len(".index")] for path in folder.glob("*.index"))


def test_the_same_tensors_at_the_same_places_give_tensorflows_index(checkpoints):
    found = prefixes(checkpoints)
    assert len(found) > 20
    for prefix in found:
        with migrate.open_checkpoint(prefix) as checkpoint:
            file = io.BytesIO()
            write_index(file, checkpoint.num_shards, checkpoint.stored.as_stored)
        with open(prefix + ".index", "rb") as theirs:
            assert file.getvalue() == theirs.read(), prefix


@settings(max_examples=50, deadline=None)
@given(entries=st.dictionaries(st.binary(max_size=12), st.binary(max_size=40), max_size=60))
def test_any_entries_are_read_back_from_blocks_of_any_size(entries, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "table"
    for block in (64, 4096):
        with pytest.MonkeyPatch.context() as patch, open(path, "wb") as file:
            patch.setattr(sstable_writing, "BLOCK_BYTES", block)
            table = TableWriter(file)
            for key in sorted(entries):
                table.add(key, entries[key])
            table.finish()
        assert dict(read_table(str(path))) == entries
