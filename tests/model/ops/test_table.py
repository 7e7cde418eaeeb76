"""docs/ops.md says which ops there are."""

from migrate.model.ops.registry import KINDS, OPS
from migrate.model.ops.table import page
from tests.support.require import ROOT


def test_the_page_is_what_the_registry_says():
    assert (ROOT / "docs" / "ops.md").read_text(encoding="utf-8") == page()


def test_every_op_is_of_one_kind_and_says_how_it_is_written():
    assert sum(map(len, KINDS.values())) == len(OPS)
    silent = [op for op, handler in OPS.items() if callable(handler)]
    assert [op for op in silent if not (OPS[op].__doc__ or "").startswith("`")] == []
