"""Hash tables of embeddings, as TFRA trains them: a row is a parameter like any other, by raw id.

With TFRA alone a look-up copies rows into a local variable, its `TrainableWrapper`; the optimizer
applies a dense kernel to that and to the slots' copies, and puts whole rows back. So of two workers
one loses its update, and of an id twice in one look-up all but the last gradient are lost.

The protocol, by role:

Every worker
1. computes the gradient of each look-up, row by row, as with TFRA alone;
2. joins the look-ups of one table, and deals ids and rows to the table's shards as the table does;
3. sends each shard's to the shard's PS with the payload, like the gradient of some rows of a
   variable: the `Shard`, whose rows are without end.

The chief, with the global batch's rows on each shard's PS
4. sums the rows of each id over the M batches, as of any sparse gradient;
5. looks up value and slots of each id, once, into wrappers of its own on that PS;
6. has TFRA apply the optimizer's kernel to them and put the rows back. So tables, slots, their
   names and checkpoints are TFRA's own, and its restrict policies see each id once per global step.

A new id has no row: every look-up draws its values from the initializer. Its row begins as one draw
of the chief's, in the first global step that trains it, regardless of the worker that met it; its
gradient is the sum over all workers, each taken at the values that the worker drew. A batch that
does not count leaves no row.

The chief is the only writer: its wrappers are read and written only by its step. They are in no
collection, since a worker's local initialisers would reset them.

A table whose policy is "async" is not part of this: each worker has TFRA apply its own batch.
"""

import contextlib
import sys
from typing import Any, Dict, List

from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.wrapped.row_table import RowTable

_TFRA = "tensorflow_recommenders_addons.dynamic_embedding"


class Shard:
    """One shard of a table, with the attributes of a variable.

    Args:
        table: a tfra.dynamic_embedding.Variable.
        number: of the shard.
        look_ups: of the table, a list of (gradient, wrapper).

    Attributes:
        op, name, device, dtype, shape: as a variable's; the rows are as many as there are ids.
    """

    def __init__(self, table, number, look_ups):
        self.table, self.look_ups = table, look_ups
        self.op = table.tables[number].resource_handle.op
        self.name, self.device = self.op.name, self.op.device
        self.dtype = table.value_dtype
        self.shape = tf.TensorShape([table.key_dtype.max, table.dim])


def by_shard(pairs, repeated_ids="sum"):
    """(gradient, variable), with the look-ups' wrappers of each table replaced by its `Shard`s.

    Args:
        repeated_ids: see `GlobalBatchOptimizer`.

    Raises:
        UsageError: a table has keys or values of a type, or look-ups, that cannot be trained so.
    """
    pairs = list(pairs)
    tables: Dict[Any, List[Any]] = {}  # table -> its (gradient, wrapper)
    for gradient, variable in pairs:
        if gradient is not None and _is_wrapper(variable):
            tables.setdefault(variable.params, []).append((gradient, variable))
    others = [pair for pair in pairs if not _is_wrapper(pair[1])]
    dealt = [_dealt(table, group, repeated_ids) for table, group in tables.items()]
    return others + [pair for of_table in dealt for pair in of_table]


def prepare(outer, optimizer, pairs):
    """Has an optimizer train the `Shard`s among (gradient, variable), where there are any.

    Args:
        outer: the GlobalBatchOptimizer, which may have been given to DynamicEmbeddingOptimizer.
        optimizer: the optimizer that it wraps.

    Raises:
        UsageError: it cannot.
    """
    shards = [variable for _, variable in pairs if isinstance(variable, Shard)]
    if not shards:
        return
    # DynamicEmbeddingOptimizer patches the optimizer that it is given and marks it so.
    if "_bp_v2" in vars(outer):
        sys.modules[_TFRA].DynamicEmbeddingOptimizer(optimizer, bp_v2=outer._bp_v2)
    if not hasattr(optimizer, "_bp_v2"):
        raise UsageError(
            "the table {} is trained by {}: wrap that with tfra.dynamic_embedding."
            "DynamicEmbeddingOptimizer, and the result with GlobalBatchOptimizer".format(
                shards[0].table.name, type(optimizer).__name__
            )
        )
    if getattr(optimizer, "_hvd_sync", False):
        raise UsageError(
            "DynamicEmbeddingOptimizer(..., synchronous=True) aggregates by horovod already: leave "
            "synchronous out"
        )


@contextlib.contextmanager
def wrappers(pairs):
    """In its block TFRA applies the pairs it yields: (gradient, variable), wrappers for `Shard`s.

    Args:
        pairs: (gradient, variable), each id of a sparse gradient once.
    """
    if not any(isinstance(variable, Shard) for _, variable in pairs):
        yield pairs
        return
    graph, local = tf.get_default_graph(), tf.get_collection_ref(tf.GraphKeys.LOCAL_VARIABLES)
    ops, variables = len(graph.get_operations()), list(local)
    yield [_wrapped(*pair) if isinstance(pair[1], Shard) else pair for pair in pairs]
    local[:] = variables  # without the slots' wrappers
    for op in graph.get_operations()[ops:]:
        # A read from a wrapper would otherwise pass through the chief's process on its way back.
        if op.type == "Identity" and not op.device:
            op._set_device(op.inputs[0].device)


def without(variables):
    """The variables without `Shard`s, whose slots TFRA makes, and tables that the job trains."""
    return [each for each in variables if not isinstance(each, (Shard, RowTable))]


def look_ups(pairs):
    """(gradient, variable) with a table's own (gradient, wrapper) in the place of its `Shard`s.

    Raises:
        UsageError: some of a table's shards are missing.
    """
    shards: Dict[Any, List[Shard]] = {}
    for _, variable in pairs:
        if isinstance(variable, Shard):
            shards.setdefault(variable.table, []).append(variable)
    for table, there in shards.items():
        if len(there) < len(table.tables):
            raise UsageError(
                'the policy makes some shards of the table {} "async", such as {}, and others not: '
                "have its regex find the table's own name".format(table.name, there[0].name)
            )
    own = [pair for there in shards.values() for pair in there[0].look_ups]
    return own + [pair for pair in pairs if not isinstance(pair[1], Shard)]


def _is_wrapper(variable):
    tfra = sys.modules.get(_TFRA)  # a job that has such tables has imported it
    if tfra is None or not isinstance(variable, tfra.TrainableWrapper):
        return False
    if isinstance(variable, tfra.shadow_ops.ShadowVariable):
        raise UsageError(
            "the table {} is looked up through a ShadowVariable, as in tf.function: use "
            "tfra.dynamic_embedding.embedding_lookup in the graph of the session".format(
                variable.params.name
            )
        )
    return True


def _dealt(table, group, repeated_ids):
    """The (gradient, `Shard`) of a table, given the (gradient, wrapper) of its look-ups."""
    _check(table)
    if any(wrapper.max_norm is not None for _, wrapper in group):
        raise UsageError(
            "the table {} is looked up with max_norm, by which TFRA changes rows that it reads: "
            "clip the vectors in the model instead".format(table.name)
        )
    rows_of = {"sum": _rows, "last": _last_rows}[repeated_ids]
    ids, rows = (tf.concat(parts, 0) for parts in zip(*(rows_of(*pair) for pair in group)))
    number = len(table.tables)
    if number == 1:
        dealt = [(ids, rows)]
    else:
        places = table.partition_fn(ids, number)
        dealt = list(zip(*(tf.dynamic_partition(part, places, number) for part in (ids, rows))))
    return [
        (tf.IndexedSlices(values, keys), Shard(table, place, group))
        for place, (keys, values) in enumerate(dealt)
    ]


def _check(table):
    if table.key_dtype not in (tf.int64, tf.int32):
        raise UsageError(
            "the table {} has keys of type {}: GlobalBatchOptimizer sums rows by ids of type int64 "
            "or int32; hash the keys, or leave the table out of var_list".format(
                table.name, table.key_dtype.name
            )
        )
    if table.value_dtype != tf.float32:
        raise UsageError(
            "the table {} has values of type {}: GlobalBatchOptimizer trains float32; make it so, "
            "or leave the table out of var_list".format(table.name, table.value_dtype.name)
        )


def _rows(gradient, wrapper):
    """The ids [n] and rows [n, dim] of a look-up's gradient."""
    ids = tf.reshape(wrapper.ids, [-1])
    if isinstance(gradient, tf.IndexedSlices):
        return tf.gather(ids, gradient.indices), gradient.values
    return ids, tf.reshape(gradient, [-1, wrapper.params.dim])


def _last_rows(gradient, wrapper):
    """The same, with only the row at each id's last place in the look-up."""
    ids = tf.reshape(wrapper.ids, [-1])
    if isinstance(gradient, tf.IndexedSlices):
        gradient = tf.unsorted_segment_sum(gradient.values, gradient.indices, tf.size(ids))
    rows = tf.reshape(gradient, [-1, wrapper.params.dim])
    unique, places = tf.unique(ids)
    last = tf.unsorted_segment_max(tf.range(tf.size(ids)), places, tf.size(unique))
    return unique, tf.gather(rows, last)


def _wrapped(gradient, shard):
    """The (gradient, wrapper) of a shard's rows, for TFRA's processor."""
    tfra = sys.modules[_TFRA]
    with tf.device(shard.device):
        wrapper = tfra.TrainableWrapper(
            shard.table,
            tf.identity(gradient.indices),
            max_norm=None,
            initial_value=tf.zeros([1, shard.table.dim], shard.dtype),
            dtype=shard.dtype,
            trainable=False,
            collections=[],
            model_mode="train",
            name="{}_of_the_chief".format(shard.name),
        )
        # TFRA assumes that the wrapper holds the rows that the batch has looked up.
        with tf.control_dependencies([wrapper.read_value()]):
            return tf.identity(gradient.values), wrapper
