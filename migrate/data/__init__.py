"""Files into training batches, in an order and with a state that are exact.

    schema = [Column("user", "ids"), Column("price", "dense"), Column("click", "label")]
    data = open_data("log/day=01", schema, 4096, last="drop", shuffle=Shuffle(seed=1))
    data.load_state_dict(saved)                  # the same files, on any number of ranks
    for batch in data:                           # the rest of the current epoch
        train(batch.sparse, batch.dense, batch.labels["click"])
        saved = data.state_dict()                # after this batch

1. The data set is a listing: its files sorted by path, each with its blocks (a row group of
   Parquet, a stripe of ORC, the lines that begin within 8 MB of text or JSON, the records of
   TFRecord) and their numbers of rows. Every rank makes the same listing, whatever order its file
   system lists in; `digest` names it.
2. The order of an epoch's rows is a pure function of (listing, shuffle, epoch). With `Shuffle` the
   blocks are permuted; consecutive ones form windows of at least `buffer` rows, and the rows of a
   window are permuted. Without, it is the listing's own.
3. A rank's share. With `Shuffle` each rank takes one contiguous part of the order, batch by batch,
   so that ranks read different blocks; the global batch is the ranks' batches of the same number.
   Without, global batch t is rows t*B to (t+1)*B of the order, B = ranks * batch_size, and rank r
   has the r-th part of it: exact order, for which the ranks read the same blocks, if these are
   larger than a global batch. All ranks have the same number of batches. The rows of the last,
   partial global batch are dropped or padded.
4. The position is (epoch, [(ranks, batch size, batches taken), ...]), one entry for each division
   of the epoch so far, which determines the rows of the order that are left. Another number of
   ranks or another batch size divides the remaining rows again. The position is the same on every
   rank, and independent of reading ahead. Restoring reads one window.
5. Threads read blocks ahead and make batches; decoding releases the GIL. Memory per rank: two
   windows, a block for each reader, and `prefetch` batches.

Importing this package imports neither torch nor pyarrow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
