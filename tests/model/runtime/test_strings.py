"""A tensor of strings moves as NumPy's arrays of objects do."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, strategies
from hypothesis.extra import numpy as arrays

from migrate.runtime import Strings
from semisync.common.errors import BadInput, UsageError
from tests.model.runtime.same import QUICK, TEXTS, objects

SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)


@strategies.composite
def tensors(draw, shape=SHAPES):
    """An object array of bytes of some shape."""
    drawn = draw(shape)
    count = int(np.prod(drawn))
    return objects(draw(strategies.lists(TEXTS, min_size=count, max_size=count)), drawn)


def assert_equal(strings, array):
    assert strings.shape == array.shape
    assert strings.numpy().tolist() == array.tolist()


@QUICK
@given(array=tensors(), data=strategies.data())
def test_indexing_gives_what_numpy_gives(array, data):
    key = data.draw(arrays.basic_indices(array.shape, allow_newaxis=True))
    expected = np.empty((), object)
    found = array[key]
    if isinstance(found, bytes):
        expected[()] = found
        found = expected
    assert_equal(Strings.of(array)[key], found)


@QUICK
@given(array=tensors())
def test_masks_and_positions_choose_strings(array):
    strings = Strings.of(array)
    mask = np.array([len(one) % 2 == 0 for one in array.ravel()], bool).reshape(array.shape)
    assert_equal(strings[torch.from_numpy(mask)], array[mask])
    order = np.random.default_rng(0).permutation(array.size)
    assert_equal(strings.take(torch.from_numpy(order)), array.ravel()[order])
    assert_equal(strings.permute(list(range(array.ndim))[::-1]), array.transpose())
    assert_equal(strings.tile([2] * array.ndim), np.tile(array, [2] * array.ndim))
    assert_equal(strings.expand_dims(-1), array[..., None])
    assert_equal(strings.expand_dims(-1).squeeze([-1]), array)
    assert_equal(strings.reshape([-1, 1] if array.size else [0, 1]), array.reshape(-1, 1))


@QUICK
@given(data=strategies.data(), shape=SHAPES)
def test_parts_are_joined_along_any_axis(data, shape):
    parts = [data.draw(tensors(strategies.just(shape))) for _ in range(3)]
    axis = data.draw(strategies.integers(-len(shape), len(shape) - 1))
    strings = [Strings.of(part) for part in parts]
    assert_equal(Strings.concat(strings, axis), np.concatenate(parts, axis))
    assert_equal(Strings.stack(strings, axis), np.stack(parts, axis))


@QUICK
@given(data=strategies.data())
def test_comparing_and_choosing_broadcast(data):
    shapes = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    one, other = (data.draw(tensors(strategies.just(shape))) for shape in shapes.input_shapes)
    a, b = Strings.of(one), Strings.of(other)
    expected = np.asarray(np.equal(one, other), bool)
    assert np.array_equal((a == b).numpy(), expected)
    assert np.array_equal((a != b).numpy(), ~expected)
    assert_equal(Strings.where(a == b, a, b), np.broadcast_to(other, expected.shape))
    assert_equal(Strings.where(a != b, a, b), np.broadcast_to(one, expected.shape))


def test_a_string_equals_bytes_to_the_last_byte():
    strings = Strings.of([[b"abcdefgh", b"abcdefgi"], [b"abcdefg", b""]])
    assert (strings == b"abcdefgh").tolist() == [[True, False], [False, False]]
    assert (strings != "").tolist() == [[True, True], [True, False]]


TEXT = ["a", "é", "", None]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(TEXT),
        pa.array(TEXT).cast(pa.large_string()),
        pa.array(TEXT).cast(pa.binary()),
        pa.array(TEXT).cast(pa.string_view()),
        pa.array(TEXT).dictionary_encode(),
        pa.chunked_array([TEXT[:2], TEXT[2:]]),
        pa.array(["x", *TEXT, "y"])[1:5],
        np.array(TEXT, object),
        np.array(["a", "é", "", ""]),
        np.array(["a".encode(), "é".encode(), b"", b""]),
        TEXT,
    ],
    ids=lambda array: str(getattr(array, "type", None) or getattr(array, "dtype", "list")),
)
def test_strings_come_from_whatever_holds_text(array):
    strings = Strings.of(array)
    assert strings.numpy().tolist() == [b"a", "é".encode(), b"", b""]
    assert Strings.of(array, [2, 2]).shape == (2, 2)


def test_a_nul_is_a_byte_like_any_other():
    for array in (["a\0b"], np.array(["a\0b"]), np.array([b"a\0b"]), np.array(["a\0b"], object)):
        assert Strings.of(array).numpy().tolist() == [b"a\0b"]


def test_empty_arrays_of_any_kind_have_no_strings():
    for empty in ([], pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.nulls(0)):
        assert Strings.of(empty).shape == (0,)
        assert Strings.of(empty).numpy().tolist() == []
    assert Strings.of(pa.nulls(2)).numpy().tolist() == [b"", b""]


def test_strings_are_listed_as_an_array_is():
    assert list(Strings.of(["a", "", "b"])) == [b"a", b"", b"b"]
    assert [row.tolist() for row in Strings.of([["a"], ["b"]])] == [[b"a"], [b"b"]]


def test_one_text_is_a_scalar():
    assert Strings.of("é").shape == ()
    assert Strings.of(b"x").numpy() == np.array(b"x", object)
    assert Strings.of(Strings.of("x"), [1]).shape == (1,)


def test_arrow_shares_the_memory():
    array = pa.array(["ab", "c"]).cast(pa.large_binary())
    strings = Strings.of(array)
    assert strings.data.ctypes.data == array.buffers()[2].address
    assert strings.arrow().equals(array)


def test_strings_are_pickled_with_their_shape():
    strings = Strings.of([["a", "b"], ["", "d"]])
    assert_equal(pickle.loads(pickle.dumps(strings)), strings.numpy())


@pytest.mark.parametrize(
    "wrong", [[1, 2], ["a", 1.5], np.zeros(2), pa.array([1]), pa.array([["a"]])]
)
def test_what_is_no_text_is_refused(wrong):
    with pytest.raises((BadInput, UsageError), match="strings were expected"):
        Strings.of(wrong)


def test_shapes_and_indices_that_do_not_fit_are_refused():
    strings = Strings.of(["a", "b"])
    with pytest.raises(BadInput, match="do not fill"):
        strings.reshape([3])
    with pytest.raises(BadInput, match="out of bounds"):
        strings[2]
    with pytest.raises(BadInput, match="an index"):
        strings.take(torch.tensor([0, 2]))
    with pytest.raises(BadInput, match="an index"):
        strings.take(torch.tensor([-1]))
    with pytest.raises(BadInput, match="length 1"):
        strings.squeeze([0])
    with pytest.raises(BadInput, match="axis 3"):
        strings.expand_dims(3)
