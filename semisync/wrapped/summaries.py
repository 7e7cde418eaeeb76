"""The summaries of a global batch by the wrapped optimizer, such as its gradients' norm.

The chief applies global batches in runs of its own, and no other run can fetch their values. So
each of its steps stores its summaries in a variable on the global step's PS, and in the graph's
collections tensors that read them replace the summaries: the job writes them like its others, when
and where it likes, and gets those of the last global step.
"""

from semisync.common.compat import tf

_KINDS = (
    *("ScalarSummary", "HistogramSummary", "ImageSummary", "AudioSummary"),
    *("TensorSummary", "TensorSummaryV2", "MergeSummary"),
)


def made_since(before):
    """The summaries in the default graph's collections whose ops are not in `before`, a list.

    Args:
        before: names of ops, a set.
    """
    keys = tf.get_default_graph().get_all_collection_keys()
    entries = [entry for key in keys for entry in tf.get_collection(key)]
    made = {
        entry.name: entry
        for entry in entries
        if isinstance(entry, tf.Tensor) and entry.op.type in _KINDS and entry.op.name not in before
    }
    return list(made.values())


def keep(summaries, job_state):
    """Replaces summaries in the collections by reads; returns the chief's op that stores them.

    Args:
        summaries: string tensors.
        job_state: the `JobState`.
    """
    op, kept = job_state.keep(summaries)
    reading = {summary.name: tensor for summary, tensor in zip(summaries, kept)}
    for key in tf.get_default_graph().get_all_collection_keys():
        entries = tf.get_collection_ref(key)
        if any(isinstance(entry, tf.Tensor) and entry.name in reading for entry in entries):
            entries[:] = [reading.get(getattr(entry, "name", None), entry) for entry in entries]
    return op
