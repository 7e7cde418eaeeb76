"""What happens to values on their way, and what verification makes of the same values."""

import numpy as np
import pytest

from migrate.manifest.manifest import Written
from migrate.manifest.transforms import CAST, COPY, HOURS, INT8, ROW_MEAN, Loss, named, to_type
from migrate.verification.expected import as_bytes, as_tensor, expected
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import number_type

ROWS = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
SECONDS = np.array([-1, 0, 3599, 3600, 7 * 10**9])
CASES = {
    COPY: (ROWS, "float32"),
    CAST: (ROWS, "bfloat16"),
    INT8: (ROWS, "uint8"),
    ROW_MEAN: (ROWS, "float32"),
    HOURS: (SECONDS, "int32"),
}


@pytest.mark.parametrize("transform", CASES, ids=lambda transform: transform.name)
def test_verification_makes_the_same_of_the_same_values(transform):
    values, dtype = CASES[transform]
    loss = Loss()
    rows = transform.apply(values, dtype, loss)
    assert rows.shape == transform.shape(values.shape)
    assert rows.dtype == number_type(dtype) and transform.dtype in (None, dtype)
    assert (loss.values == values.size) == transform.lossy
    written = Written("x", "x", "table", list(rows.shape), dtype, transform=transform.name)
    again = expected(values, written)
    if transform.exact:
        assert np.array_equal(as_bytes(again), as_bytes(as_tensor(rows)))
    else:
        assert np.allclose(again.numpy(), rows, rtol=1e-6, atol=0)


def test_a_transform_is_known_by_its_name():
    assert [named(transform.name) for transform in CASES] == list(CASES)
    with pytest.raises(BadInput, match="the manifest: transform 'twice', expected one of copy,"):
        named("twice")


def test_the_type_of_source_and_target_tell_how_a_weight_gets_there():
    assert to_type("float32", "float32") is COPY
    assert to_type("float32", "float16") is CAST
    assert to_type("float32", "int8") is INT8


def test_rows_take_as_many_bytes_as_their_transform_says():
    assert CAST.row_bytes(10, "float16") == 20
    assert (INT8.row_bytes(10, "int8"), INT8.row_bytes(10, "int8", gpu=True)) == (14, 16)
