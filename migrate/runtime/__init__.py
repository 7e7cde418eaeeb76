"""The functions that an emitted model.py imports: TensorFlow's semantics where torch has no
one-liner.

Needs torch, numpy, pyarrow and, for strings and sparse ids, numba. Each name is imported when it is
first used.
"""

import importlib
from typing import Any, List

from migrate.runtime import numeric

HOME = {
    **numeric.HOME,
    "Bags": "migrate.runtime.embeddings",
    "Files": "migrate.runtime.files",
    "Input": "migrate.runtime.interface",
    "Variable": "migrate.runtime.interface",
    "keep_freed_memory": "migrate.runtime.serving.memory",
    "load": "migrate.runtime.loading",
    "BatchNorm": "migrate.runtime.batch_norm",
    "LookupTable": "migrate.runtime.tables.lookup_table",
    "NumericPart": "migrate.runtime.serving.numeric_part",
    "ParsedExamples": "migrate.runtime.examples",
    "Strings": "migrate.runtime.strings",
    "TableById": "migrate.runtime.tables.by_id",
    "as_string": "migrate.runtime.printing",
    "bags": "migrate.runtime.embeddings",
    "bucketize": "migrate.runtime.buckets",
    "bucketize_each": "migrate.runtime.buckets",
    "by_name": "migrate.runtime.interface",
    "decode_csv": "migrate.runtime.decode",
    "decode_raw": "migrate.runtime.decode",
    "fingerprint64": "migrate.runtime.hashing",
    "fingerprint_cat64": "migrate.runtime.hashing",
    "integers_to_hash_bucket": "migrate.runtime.hashing",
    "look_up": "migrate.runtime.embeddings",
    "look_up_bags": "migrate.runtime.embeddings",
    "on_the_cpu": "migrate.runtime.devices",
    "parse_example": "migrate.runtime.examples",
    "present_bags": "migrate.runtime.ragged_ids",
    "regex_full_match": "migrate.runtime.text",
    "regex_replace": "migrate.runtime.text",
    "rows": "migrate.runtime.tables.rows",
    "sparse_bags": "migrate.runtime.ragged_ids",
    "sparse_cross": "migrate.runtime.crosses",
    "string_join": "migrate.runtime.text",
    "string_length": "migrate.runtime.text",
    "string_lower": "migrate.runtime.text",
    "string_split": "migrate.runtime.splitting",
    "string_split_v2": "migrate.runtime.splitting",
    "string_strip": "migrate.runtime.text",
    "string_to_hash_bucket": "migrate.runtime.hashing",
    "string_to_hash_bucket_fast": "migrate.runtime.hashing",
    "string_to_hash_bucket_strong": "migrate.runtime.hashing",
    "string_to_number": "migrate.runtime.reading",
    "string_upper": "migrate.runtime.text",
    "substr": "migrate.runtime.text",
    "where_the_weights_are": "migrate.runtime.devices",
}

__all__ = sorted(HOME)


def __getattr__(name: str) -> Any:
    if name in HOME:
        found = getattr(importlib.import_module(HOME[name]), name)
        globals()[name] = found  # this function is not called for it again
        return found
    raise AttributeError(f"module 'migrate.runtime' has no attribute {name!r}")


def __dir__() -> List[str]:
    return __all__
