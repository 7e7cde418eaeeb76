"""Lookup tables: vocabularies, and the words outside of them."""

from __future__ import annotations

from migrate.model.ops.values import Ops

OPS: Ops = {
    "LookupTableFind": "{0}.find({1:t}, {2})",
    "LookupTableFindV2": "{0}.find({1:t}, {2})",
    "LookupTableSize": "torch.tensor(len({0}))",
    "LookupTableSizeV2": "torch.tensor(len({0}))",
}
