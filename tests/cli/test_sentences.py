"""A long list in a sentence says how much of it is not there."""

import pytest

from migrate.to_tensorflow.keys import Keys
from semisync.common.errors import BadInput
from semisync.common.sentences import some_of, words_of


@pytest.mark.parametrize(
    "count, text",
    [
        (0, ""),
        (1, "t0"),
        (3, "t0, t1, t2"),
        (4, "t0, t1, t2 and 1 more"),
        (1203, "t0, t1, t2 and 1,200 more"),
    ],
)
def test_what_is_left_out_is_counted(count, text):
    assert some_of((f"t{k}" for k in range(count)), most=3) == text


def test_an_error_is_told_on_one_line_and_never_empty():
    assert words_of(ValueError("a\n  b")) == "a b"
    assert words_of(MemoryError()) == "MemoryError"
    assert words_of(ValueError("x" * 9000)).endswith("xx ...")


def test_a_name_that_stands_too_often_does_not_hide_how_often():
    keys = Keys([f"copy{k}.weight" for k in range(9)], "model.pt")
    with pytest.raises(BadInput, match="copy5.weight and 3 more; save the model once"):
        keys.find("weight")
