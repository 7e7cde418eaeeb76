"""Embedding tables by raw ids in plain torch: any int64 id, no declared size, any number of
processes.

    tables = IdEmbeddings([IdTable("user", dim=16, features=["user", "friend"])])
    optimizer = tables.optimizer(Adagrad, lr=0.05)           # of migrate.torchrec.optimizers
    loss = model(tables(features)["user"]).mean()            # new ids get rows
    loss.backward()
    optimizer.step()                                         # steps the batch's rows alone

Every process calls the same functions in the same order; its batch may be empty.

Look-up, while the module trains:
1. A process asks for each id of its batch once, and says how often it has it. An id belongs to
   process murmur(id) % processes.
2. The owner gives new ids rows. Their vectors depend on the seed, the table and the id alone; their
   slots get the optimizer's initial values. It counts, and notes the coming step as the ids' last.
3. The rows come back as a leaf of autograd, where the gradients of repeated ids are summed.

Step:
4. The gradients of the rows go to the owners, which add them up in the order of the processes, and
   divide by the number of processes by default.
5. The optimizer steps the rows of every look-up of which any process has a gradient. With a loss
   that is a mean over equal shares of a batch, that is the step of one process with the whole
   batch, up to rounding.
6. A table beyond its `Limit` evicts rows. An evicted id that returns starts over.

`fill` takes rows and slots of TensorFlow's hash tables; `save` and `load` are for any number of
processes.

A frozen look-up (`eval`, or no gradients) gives no rows and counts only how many ids are unknown.

Memory of a process: its rows, each 32 bytes for the index, 24 for id, count and last step, and
4 dim for the vector and each slot; up to twice that, and thrice for a moment, as the room doubles.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
