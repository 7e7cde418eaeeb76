"""Does a converted directory hold the checkpoint's values? Both sides are read again.

1. The manifest has the source of each tensor of the target, and the transform.
2. Source: each id's row is looked up as TensorFlow would, partition by partition, with range reads.
   Target: rows are read by the format's own metadata (`migrate.targets.reading`).
3. Every value must agree in every bit. A cast is made again, by torch, 8-bit rows by FBGEMM; the
   mean of a row may differ by the rounding of its last bit, since the order of the sum is not
   defined.
4. The bytes of the target must have the manifest's SHA-256, unless only a sample is read.
5. Hash tables are compared id by id (`migrate.verification.ids`).
6. Every tensor of the checkpoint must be accounted for: written, or dropped with a reason.
7. The manifest must have its own SHA-256, and `model.json` the tables as they are; any other edit
   of it is a note.

A sample of n rows that all agree says, with confidence c, that at most 1 - (1 - c)^(1/n) of the
rows of the tensor differ (the exact binomial bound for no failure in n draws).
"""

from migrate.verification.comparing import compare, verify
from migrate.verification.findings import Verification

__all__ = ["Verification", "compare", "verify"]
