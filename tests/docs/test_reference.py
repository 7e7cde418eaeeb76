"""The public docstrings say what there is to say, and their examples run."""

import pytest

from semisync.common.errors import BadInput
from tests.docs import reference
from tests.support.programs import output_of

PACKAGES = ("semisync", "graph_rewrite", "migrate", "parity")


@pytest.mark.few(1)
@pytest.mark.parametrize("package", PACKAGES)
def test_what_the_reference_shows_is_described_and_its_examples_run(package, interpreters):
    command = [interpreters / "python", "-W", "ignore", "-m", "tests.docs.reference", package]
    assert output_of(*command, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1") == ""


def described(path, flag=False):
    """Sums up a file.

    Args:
        path: of the file.
        flag: whether to.

    Returns:
        An int.

    Raises:
        BadInput: it is missing.

    Examples:
        >>> one + 1
        2
    """
    if flag:
        raise BadInput(path)
    return 1


@pytest.mark.parametrize(
    ("removed", "sentence"),
    [
        ("", None),
        ("flag: whether to.", "described does not say what flag is"),
        ("Returns:\n        An int.", "described does not say what it returns"),
        ("Raises:\n        BadInput: it is missing.", "described does not say when it raises"),
    ],
)
def test_a_gap_in_a_docstring_is_noticed(removed, sentence, monkeypatch):
    raising = described.__doc__.replace(removed, "", 1)
    monkeypatch.setattr(described, "__doc__", raising)
    found = reference.missing("described", described)
    assert [one[: len(sentence or "")] for one in found] == ([sentence] if sentence else [])


def test_an_example_that_prints_something_else_is_noticed():
    assert reference.example("described", described, {"one": 1}, "") == []
    (found,) = reference.example("described", described, {"one": 2}, "")
    assert "Expected:\n    2\nGot:\n    3" in found


def test_a_function_without_an_example_is_noticed():
    assert reference.example("missing", reference.missing, {}, "") == ["missing has no example"]
