"""Real MetaGraphs of training jobs that others have published, rewritten or refused, and why."""

import numpy as np
import pytest

import graph_rewrite
import semisync
from graph_rewrite.metagraph.files import read
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.support.require import shared
from tests.wrap.one_process import PATIENCE

pytestmark = pytest.mark.one_tensorflow

M = 4

REFUSED = {
    # Calls minimize twice; each makes an Adam of its own.
    "haiy_dist_ps/model.ckpt-504.meta": "trains in 2 ways that have nothing in common: "
    "name one of Adam, Adam_1",
    "haiy_dist_ps/model.ckpt-6.meta": "trains in 2 ways",
    # Adds to a trainable variable what it computes of a batch, beside its gradient descent.
    "princewen_ffm/FFM-0.meta": "the op Assign of type Assign makes the trainable variable",
    # Neither was ever trained by this graph.
    "xdl_blaze_model/model.ckpt.meta": "no op of the graph trains",
    "tf_feature_column_embedding/testdata/embedding.ckpt.meta": "no op of the graph trains",
}

# path: (options, how many variables are trained)
REWRITTEN = {
    "criteo_tf_tile/model.ckpt-40000.meta": ({}, 2),
    "criteo_tf_tile/tile/model.ckpt-40000.meta": ({}, 2),
    "haiy_dist_ps/model.ckpt-504.meta": ({"train_op": "Adam_1"}, 4),
    # A DQN of 2016: its RMSProp was never told of a global step.
    "jhollowayj_distributed/model.ckpt-0.meta": ({}, 6),
    # Has a global step, and minimizes without it.
    "joonyoung_dist_2shards/model.ckpt-0.meta": ({}, 4),
    "movie_recommender_brickhoff/save.meta": ({}, 31),
}


@pytest.mark.parametrize("path", sorted(REFUSED))
def test_it_is_refused_with_its_reason(path):
    meta = read(str(shared("models", *path.split("/"))))
    with pytest.raises(BadInput, match=REFUSED[path]):
        graph_rewrite.semi_synchronize(meta, M)


@pytest.mark.parametrize("path", sorted(REWRITTEN))
@pytest.mark.few(1)
def test_it_is_rewritten_and_can_be_imported(path):
    options, trained = REWRITTEN[path]
    meta = read(str(shared("models", *path.split("/"))))
    out, report = graph_rewrite.semi_synchronize(meta, M, **options)
    assert len(report.trained) == trained
    with tf.Graph().as_default():
        tf.train.import_meta_graph(out)
        semisync.restore_hook(True, worker_device="/job:worker/task:1")


def batch(graph, meta):
    """8 examples of the first category; scalars are 1."""
    found = {}
    for node in meta.graph_def.node:
        if node.op == "Placeholder":
            tensor = graph.get_tensor_by_name(node.name + ":0")
            known = tensor.shape.rank
            found[tensor] = np.zeros([n or 8 for n in tensor.shape.as_list()]) if known else 1
    return found


@pytest.mark.long
def test_the_movie_recommender_trains():
    meta = read(str(shared("models", "movie_recommender_brickhoff", "save.meta")))
    out, report = graph_rewrite.semi_synchronize(meta, M, paced=True)
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(out)
        hook = semisync.restore_hook(True, patience=PATIENCE)
        feed = batch(graph, meta)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            for _ in range(3 * M):
                session.run(report.stand_ins[-1], feed)
    assert hook.ledger.fates["admitted"] == 3 * M
