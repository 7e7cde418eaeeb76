"""Does the target hold every id of a hash table, with its row and slots? Both are read again.

The rows of source and target have different orders, and neither fits into memory, so that they are
compared in three steps that sort nothing and so share nothing with the conversion:

1. Each side is streamed once. Every (id, row) is hashed to 64 bits with weights drawn at random,
   and the hashes are added up in 2^16 classes of ids (`sums`). Where the sums of a class agree, so
   do its rows: a single wrong row stays unseen with a probability below 2^-32. Rows that hold the
   initial value of their slot count for nothing, for an id without the state begins with it.
2. The ids of classes that differ are read from both sides and compared one by one (`table`):
   that names the id, and settles intended differences, duplicates that lost and state without
   an id.
3. Every id must stand where the target will look for it (`standing`), and every row without an id
   must be zero, or a state's initial value: an absent id gets such a row, and a new one begins
   with it.
"""

from migrate.verification.ids.table import Compared, compare_table

__all__ = ["Compared", "compare_table"]
