"""tf.layers.batch_normalization, every way to call it, under both kinds of control flow."""

import pytest

from graph_rewrite import BatchNorm, Update, find_batch_norms
from semisync.common.compat import tf
from tests.rewrite import zoo

WORLDS = [(1, False), (1, True), (2, True)]  # (version of control flow, resource variables)


def build(x, world, training, **options):
    """The graph of one layer "bn" whose updates an op "updates" runs."""
    with zoo.graph(*world) as graph:
        options = dict({"momentum": 0.9, "epsilon": 0.01, "name": "bn"}, **options)
        training = zoo.predicate() if training == "training" else training
        zoo.layers.batch_normalization(x(), training=training, **options)
        zoo.group_updates()
    return graph


def update_ops(world, in_condition):
    """The names of the ops that assign, the mean's and the variance's."""
    control_flow, resource = world
    places = {1: ("bn/cond_2/", "bn/cond_3/")}.get(control_flow)
    places = places or ("bn/cond_2[then_branch]/", "bn/cond_3[then_branch]/")
    if not in_condition:
        places = "bn/", "bn/"
    names = ("AssignMovingAvg", "AssignMovingAvg") if in_condition else None
    names = names or ("AssignMovingAvg", "AssignMovingAvg_1")
    last = "/AssignSubVariableOp" if resource else ""
    return [place + name + last for place, name in zip(places, names)]


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize("training", [True, "training"])
def test_unfused(world, training):
    found = find_batch_norms(build(zoo.rows, world, training))
    chosen = training == "training"
    joined = ["bn/cond/Merge", "bn/cond_1/Merge"]
    if world[0] == 2:
        joined = ["bn/cond/Identity", "bn/cond_1/Identity"]
    mean, variance = joined if chosen else ("bn/moments/Squeeze", "bn/moments/Squeeze_1")
    ops = update_ops(world, chosen)
    (bn,) = found
    assert bn._replace(updates=[], dependents=[]) == BatchNorm(
        name="bn",
        kind="unfused",
        op="bn/batchnorm/Rsqrt",
        input="x",
        gamma="bn/gamma",
        beta="bn/beta",
        moving_mean="bn/moving_mean",
        moving_variance="bn/moving_variance",
        momentum=0.9,
        epsilon=0.01,
        axis=(1,),
        training=training,
        mean=mean,
        variance=variance,
        bessel=False,
        updates=[],
        dependents=[],
        in_collection=True,
        finding="",
        left_alone="",
    )
    assert [u.op for u in bn.updates] == ops
    assert [u.variable for u in bn.updates] == ["bn/moving_mean", "bn/moving_variance"]
    assert [u.rate for u in bn.updates] == [0.1, 0.1]
    assert [u.in_branch for u in bn.updates] == [chosen, chosen]
    assert all(u.kind == "average" and not u.left_alone for u in bn.updates)


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize("training", [True, "training"])
def test_fused(world, training):
    """The updates stand outside of the condition; their rate is 0 where the layer infers."""
    (bn,) = find_batch_norms(build(zoo.images, world, training))
    chosen = training == "training"
    op = {
        (True, 1): "bn/cond/FusedBatchNormV3",
        (True, 2): "bn/cond[then_branch]/FusedBatchNormV3",
    }.get((chosen, world[0]), "bn/FusedBatchNormV3")
    mean, variance = {
        (True, 1): ("bn/cond/Merge_1", "bn/cond/Merge_2"),
        (True, 2): ("bn/cond/Identity_1", "bn/cond/Identity_2"),
    }.get((chosen, world[0]), (op + ":1", op + ":2"))
    assert bn._replace(updates=[], dependents=[]) == BatchNorm(
        name="bn",
        kind="fused",
        op=op,
        input="x",
        gamma="bn/gamma",
        beta="bn/beta",
        moving_mean="bn/moving_mean",
        moving_variance="bn/moving_variance",
        momentum=0.9,
        epsilon=0.01,
        axis=(3,),
        training=training,
        mean=mean,
        variance=variance,
        bessel=True,
        updates=[],
        dependents=[],
        in_collection=True,
        finding="",
        left_alone="",
    )
    assert [u.op for u in bn.updates] == update_ops(world, False)
    assert [u.source for u in bn.updates] == [mean, variance]
    assert [u.rate for u in bn.updates] == [0.1, 0.1]
    assert [u.in_branch for u in bn.updates] == [False, False]


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize("x", [zoo.rows, zoo.images])
def test_without_training_nothing_is_updated_which_is_found(world, x):
    (bn,) = find_batch_norms(build(x, world, False))
    assert bn.training is False
    assert bn.updates == []
    assert (bn.mean, bn.variance, bn.momentum) == (None, None, None)
    assert (bn.gamma, bn.beta) == ("bn/gamma", "bn/beta")
    assert (bn.moving_mean, bn.moving_variance) == ("bn/moving_mean", "bn/moving_variance")
    assert bn.finding == (
        "nothing updates 'bn/moving_mean' and 'bn/moving_variance': training is False"
    )
    assert bn.left_alone == ""


def test_dependents_are_what_takes_the_updates_or_waits_for_them():
    def of(*arguments):
        return find_batch_norms(build(*arguments))[0].dependents

    assert of(zoo.rows, (1, False), True) == ("updates",)
    assert of(zoo.rows, (1, False), "training") == ("bn/cond_2/Merge", "bn/cond_3/Merge")
    assert "updates" in of(zoo.images, (1, False), "training")
    assert "bn/cond_2/Identity" in of(zoo.rows, (2, True), "training")


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("x", [zoo.rows, zoo.images])
def test_gamma_and_beta_are_told_only_where_there_are_any(x, center, scale):
    (bn,) = find_batch_norms(build(x, (1, False), True, center=center, scale=scale))
    assert bn.gamma == ("bn/gamma" if scale else None)
    assert bn.beta == ("bn/beta" if center else None)
    assert len(bn.updates) == 2


@pytest.mark.parametrize("fused", [True, False])
def test_the_channels_may_come_first(fused):
    (bn,) = find_batch_norms(build(zoo.images, (1, False), True, axis=1, fused=fused))
    assert bn.axis == (1,)
    assert (bn.moving_mean, bn.moving_variance) == ("bn/moving_mean", "bn/moving_variance")


@pytest.mark.parametrize("training", [True, "training"])
def test_an_export_may_leave_out_the_defaults_of_the_attributes(training):
    graph = build(zoo.images, (1, False), training, epsilon=1e-4)
    with graph.as_default():
        meta = tf.train.export_meta_graph(strip_default_attrs=True)
    kernels = [node for node in meta.graph_def.node if node.op == "FusedBatchNormV3"]
    assert not any({"epsilon", "data_format"} & set(node.attr) for node in kernels)
    assert find_batch_norms(meta) == find_batch_norms(graph)
    assert find_batch_norms(meta)[0].epsilon == 1e-4


def test_several_axes_may_have_their_own_numbers():
    (bn,) = find_batch_norms(build(zoo.images, (1, False), True, axis=[1, 3]))
    assert bn.axis == (1, 3)


def test_a_predicate_that_trains_where_it_is_false_is_left_alone():
    with zoo.graph() as graph:
        mean, variance = tf.nn.moments(zoo.rows(), [0])
        moving = zoo.moving()
        infers = zoo.predicate()
        pair = tf.cond(infers, lambda: [m.read_value() for m in moving], lambda: [mean, variance])
        zoo.normalise(graph.get_tensor_by_name("x:0"), *pair)
        tf.assign_sub(moving[0], (moving[0] - mean) * 0.1)
        tf.assign_sub(moving[1], (moving[1] - variance) * 0.1)
    (bn,) = find_batch_norms(graph)
    assert bn.training == "training"
    assert bn.left_alone.startswith("it trains where 'training' is false")


def test_updates_that_nothing_runs_are_found():
    with zoo.graph() as graph:
        y = zoo.layers.batch_normalization(zoo.rows(), training=True, name="bn")
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
        (bn,) = find_batch_norms(graph)
        assert bn.finding == (
            "nothing runs the updates of 'bn/moving_mean' and 'bn/moving_variance': "
            "they stand in UPDATE_OPS, and no op depends on them"
        )
        zoo.group_updates()
        assert find_batch_norms(graph)[0].finding == ""


def test_a_layer_used_twice_is_two_that_share_their_variables():
    with zoo.graph() as graph:
        layer = zoo.layers.BatchNormalization(name="bn")
        layer.apply(zoo.rows(name="one"), training=True)
        layer.apply(zoo.rows(name="two"), training=True)
    one, two = find_batch_norms(graph)
    assert (one.input, two.input) == ("one", "two")
    assert one.moving_mean == two.moving_mean == "bn/moving_mean"
    assert one.left_alone == "'{}' updates 'bn/moving_mean' too".format(two.op)


def test_an_inference_copy_of_a_layer_that_trains_is_nothing_to_complain_of():
    with zoo.graph() as graph:
        layer = zoo.layers.BatchNormalization(name="bn")
        layer.apply(zoo.rows(name="one"), training=True)
        layer.apply(zoo.rows(name="two"), training=False)
    train, infer = find_batch_norms(graph)
    assert (train.training, infer.training) == (True, False)
    assert infer.updates == []
    assert infer.finding == infer.left_alone == ""


@pytest.mark.parametrize(
    "training, options, reason",
    [
        (True, {"renorm": True}, "its mean is kept 2 times"),
        ("training", {"renorm": True}, "of its statistics in a way that is not known"),
        (True, {"virtual_batch_size": 4}, "of its statistics in a way that is not known"),
        ("training", {"virtual_batch_size": 4}, "of its statistics in a way that is not known"),
    ],
)
def test_renorm_and_virtual_batches_are_left_alone(training, options, reason):
    graph = build(zoo.images, (1, False), training, **options)
    (bn,) = find_batch_norms(graph)
    assert not bn.shareable
    assert reason in bn.left_alone
    assert bn.finding == ""


def test_partitioned_gamma_and_beta_are_told_by_what_their_parts_share():
    with zoo.graph() as graph:
        parts = tf.fixed_size_partitioner(2)
        with tf.variable_scope("net", partitioner=parts):
            zoo.layers.batch_normalization(zoo.rows(), training=True, name="bn")
    (bn,) = find_batch_norms(graph)
    assert (bn.gamma, bn.beta) == ("net/bn/gamma", "net/bn/beta")
    assert bn.moving_mean == "net/bn/moving_mean"
    assert bn.name == "net/bn"


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_a_graph_def_and_a_meta_graph_tell_the_same(world):
    graph = build(zoo.rows, world, "training")
    (bn,) = find_batch_norms(graph)
    with graph.as_default():
        meta = tf.train.export_meta_graph()
    assert find_batch_norms(meta) == [bn]
    (bare,) = find_batch_norms(graph.as_graph_def())
    assert bare == bn._replace(in_collection=False)


def test_an_update_is_a_tuple_that_names_its_fields():
    (bn,) = find_batch_norms(build(zoo.rows, (1, False), True))
    assert bn.updates[0] == Update(
        variable="bn/moving_mean",
        source="bn/moments/Squeeze",
        rate=0.1,
        op="bn/AssignMovingAvg",
        in_branch=False,
        dependents=("updates",),
        kind="average",
        left_alone="",
    )
