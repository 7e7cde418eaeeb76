"""The faults that `python -m tests.mutations` plants are of the code as it is."""

import pytest

from tests.mutations.__main__ import MUTATIONS, ROOT


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.after.strip()[:40])
def test_the_place_of_a_fault_is_there_once(mutation):
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.before) == 1
