"""`.metadata` of a DCP, a pickle, is read as data alone, whoever wrote it."""

import contextlib
import os
import pathlib
import pickle
import pickletools

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint import metadata as records
from torch.distributed.checkpoint.filesystem import _StorageInfo

from migrate.targets.reading.dcp import read_dcp
from migrate.targets.reading.dcp_metadata import read_metadata
from migrate.targets.reading.torch_readers import read
from migrate.training import Checkpoints
from semisync.common.errors import BadInput
from tests.support.hostile import Touches, touching

STATE = {
    "a": torch.arange(6.0).reshape(3, 2),
    "nested": {"half": torch.ones(2).bfloat16(), "rate": 0.1, "list": [1, torch.ones(())]},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A DCP that torch itself wrote, of tensors and of other objects."""
    folder = tmp_path_factory.mktemp("saved")
    dcp.save(STATE, checkpoint_id=folder, no_dist=True)
    assert pathlib.PosixPath in map(type, vars(pickled(folder).storage_meta).values())
    return folder


def pickled(folder):
    return pickle.loads((folder / ".metadata").read_bytes())


def put(folder, data):
    """`folder`, whose .metadata has the bytes `data`."""
    folder.mkdir(exist_ok=True)
    (folder / ".metadata").write_bytes(data)
    return folder


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_torch_writes_is_read(saved, tmp_path, protocol):
    genuine = pickled(saved)
    assert read_metadata(str(put(tmp_path, pickle.dumps(genuine, protocol)))) == genuine
    assert read_dcp(str(saved))["nested.half"][:2] == ("bfloat16", (2,))


def test_what_it_calls_is_refused_before_it_is_called(saved, tmp_path):
    marker = tmp_path / "ran"
    data = touching(marker, (saved / ".metadata").read_bytes())
    assert pickle.loads(data) == pickled(saved) and marker.exists()
    marker.unlink()
    folder = put(tmp_path / "folder", data)
    checkpoints = Checkpoints(str(tmp_path))
    folder.rename(checkpoints.path(3))
    for reads in (
        lambda: read_metadata(checkpoints.path(3)),
        lambda: read(checkpoints.path(3), {"a": torch.zeros(3, 2)}),
        lambda: checkpoints.load(3, {"a": torch.zeros(3, 2)}),
        lambda: checkpoints.sizes(3),
    ):
        with pytest.raises(BadInput, match="it names .*open, which is no record of torch"):
            reads()
    assert not marker.exists()


def test_an_object_among_the_tensors_is_not_unpickled(tmp_path):
    marker = tmp_path / "ran"
    folder = tmp_path / "saved"
    dcp.save({"a": Touches(marker)}, checkpoint_id=folder, no_dist=True)
    with pytest.raises(BadInput, match="'a' is not a tensor"):
        read(str(folder), {"a": torch.zeros(3, 2)})
    assert not marker.exists()


def nested(times):
    """A tuple whose hash takes 2 ** times steps."""
    return pickle.dumps((), 2)[2:-1] + (pickle.DUP + pickle.TUPLE2) * times


def of_class(name, state):
    """A pickle that gives the class `name` a state."""
    module, _, leaf = name.rpartition(".")
    return b"".join(
        [
            pickle.PROTO + b"\x02" + pickle.GLOBAL + f"{module}\n{leaf}\n".encode(),
            pickle.dumps((None, state), 2)[2:-1],
            pickle.BUILD + pickle.STOP,
        ]
    )


_OF_RECORDS = "torch.distributed.checkpoint.metadata."
HOSTILE = {
    "a class gets a state": of_class(_OF_RECORDS + "Metadata", {"version": "poisoned"}),
    "a member gets a state": b"".join(
        [
            pickle.dumps(records._MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST, 2)[:-1],
            pickle.dumps({"_value_": 0}, 2)[2:-1] + pickle.BUILD + pickle.STOP,
        ]
    ),
    "a record is called": pickle.dumps(records.Metadata, 2)[:-1] + b")R.",
    "a key that is hashed for years": b"\x80\x02}" + nested(200) + b"K\x01s.",
    "an argument that is hashed for years": b"".join(
        [b"\x80\x02ctorch.serialization\n_get_layout\n", nested(200), b"\x85R."]
    ),
    "room for 2 ** 60 bytes": b"\x80\x05" + pickle.BYTEARRAY8 + (1 << 60).to_bytes(8, "little"),
    "a place in the memo of 32 GB": b"\x80\x02N" + pickle.LONG_BINPUT + b"\xff\xff\xff\xff.",
    "another object": pickle.dumps({"state_dict_metadata": {}}),
    "nothing": b"",
    "the first half": pickle.dumps(records.Metadata({}, {}, {}))[:60],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_metadata_does_is_refused(tmp_path, name):
    with pytest.raises(BadInput, match="cannot be read: .*; expected a torch Distributed Checkpoi"):
        read_metadata(str(put(tmp_path, HOSTILE[name])))
    assert records.Metadata.version is None
    assert records._MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST.value == 1


def metadata(path="__0_0.distcp", offset=(0,), chunks=1, **changed):
    box = records.ChunkStorageMetadata(torch.Size(offset), torch.Size([2]))
    tensor = records.TensorStorageMetadata(
        records.TensorProperties(), torch.Size([2]), [box] * chunks
    )
    place = {records.MetadataIndex("a", torch.Size(offset)): _StorageInfo(path, 0, 9)}
    return records.Metadata(
        **{"state_dict_metadata": {"a": tensor}, "storage_data": place, **changed}
    )


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (lambda: metadata(path="../other/__0_0.distcp"), "names the file '../other/__0_0.distcp'"),
        (lambda: metadata(path="/etc/passwd"), "names the file '/etc/passwd'; expected one in"),
        (lambda: metadata(path="a://b/c"), "names the file 'a://b/c'; expected one in"),
        (lambda: metadata(path="pipe"), "pipe is not a regular file"),
        (lambda: metadata(chunks=3), "it does what the pickle of a DCP's metadata does not"),
        (lambda: metadata(storage_data={"a": 3}), "it does what the pickle of a DCP's metadata"),
        (lambda: metadata(storage_data=[]), "it does what the pickle of a DCP's metadata does not"),
    ],
)
def test_what_leads_elsewhere_or_counts_twice_is_refused(tmp_path, of, sentence):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match=sentence):
        read_metadata(str(put(tmp_path, pickle.dumps(of()))))


@given(at=st.integers(0, 9999), byte=st.integers(0, 255), cut=st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_is_read_or_refused(saved, tmp_path, at, byte, cut):
    data = bytearray((saved / ".metadata").read_bytes())
    at = at * len(data) // 10000
    if cut:
        del data[at:]
    else:
        data[at] = byte
    with contextlib.suppress(BadInput):
        read_dcp(str(put(tmp_path / "damaged", bytes(data))))


def test_the_tests_attack_what_pickle_itself_allows():
    assert len(list(pickletools.genops(HOSTILE["a class gets a state"]))) > 5
    pickle.loads(HOSTILE["a class gets a state"])
    try:
        assert records.Metadata.version == "poisoned"
    finally:
        records.Metadata.version = None
