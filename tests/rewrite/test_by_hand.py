"""Batch normalisations that their author wrote with tf.nn and assignments."""

import pytest

from graph_rewrite import find_batch_norms, find_updates
from semisync.common.compat import raw_ops, tf
from tests.forms.ways import MOMENTS, MOVES, NORMALISATIONS, RATE
from tests.rewrite import zoo


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("form", sorted(MOVES))
def test_every_form_of_a_moving_average_is_one(form, resource):
    with zoo.graph(resource=resource) as graph:
        x = zoo.rows()
        mean, variance = tf.nn.moments(x, [0])
        names = zoo.moving()
        for name, statistic in zip(names, (mean, variance)):
            MOVES[form](name, statistic)
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert bn.training is True
    assert (bn.moving_mean, bn.moving_variance) == ("bn/moving_mean", "bn/moving_variance")
    assert bn.momentum == 0.9
    assert (bn.mean, bn.variance) == ("moments/Squeeze", "moments/Squeeze_1")
    assert (bn.gamma, bn.beta, bn.epsilon) == ("bn/gamma", "bn/beta", 1e-3)
    assert [u.rate for u in bn.updates] == [RATE, RATE]
    assert bn.in_collection is False
    assert bn.left_alone == bn.finding == ""
    assert find_updates(graph) == []


def test_weights_that_do_not_add_to_one_make_no_moving_average():
    with zoo.graph() as graph:
        mean, _ = zoo.moving()
        tf.assign(mean, mean * 0.9 + tf.reduce_mean(zoo.rows(), 0) * 0.2, name="odd")
    assert find_batch_norms(graph) == []
    (update,) = find_updates(graph)
    assert (update.op, update.kind, update.rate) == ("odd", "assign", None)


@pytest.mark.parametrize("control_flow", [1, 2])
def test_exponential_moving_average_inside_a_condition(control_flow):
    """The form that a much copied answer has: the condition's branch applies the average."""
    with zoo.graph(control_flow) as graph:
        x, training = zoo.rows(), zoo.predicate()
        mean, variance = tf.nn.moments(x, [0])
        average = tf.train.ExponentialMovingAverage(0.9)

        def update():
            with tf.control_dependencies([average.apply([mean, variance])]):
                return tf.identity(mean), tf.identity(variance)

        def recall():
            return average.average(mean).read_value(), average.average(variance).read_value()

        if control_flow == 2:  # the branch may make no variable that the other one needs
            average.apply([mean, variance])
        chosen = tf.cond(training, update, recall)
        zoo.normalise(x, *chosen)
    found = find_batch_norms(graph)
    assert len(found) == 1
    (bn,) = found
    assert bn.training == "training"
    assert bn.input == "x"
    assert bn.momentum == 0.9
    assert bn.moving_mean == "moments/Squeeze/ExponentialMovingAverage"
    assert bn.moving_variance == "moments/Squeeze_1/ExponentialMovingAverage"
    if control_flow == 1:
        assert (bn.mean, bn.variance) == ("moments/Squeeze", "moments/Squeeze_1")
        assert all(update.in_branch for update in bn.updates)
        assert bn.updates[0].dependents == ("cond/ExponentialMovingAverage",)
        assert bn.left_alone == ""
    else:
        assert "kept 2 times" in bn.left_alone


@pytest.mark.parametrize("control_flow", [1, 2])
def test_a_momentum_for_each_branch_is_left_alone(control_flow):
    with zoo.graph(control_flow) as graph:
        x, moving = zoo.rows(), zoo.moving()
        mean, variance = tf.nn.moments(x, [0])

        def update(rate):
            done = [tf.assign_sub(v, (v - s) * rate) for v, s in zip(moving, (mean, variance))]
            with tf.control_dependencies(done):
                return tf.identity(mean), tf.identity(variance)

        warm = tf.less(tf.train.get_or_create_global_step(), 100)
        zoo.normalise(x, *tf.cond(warm, lambda: update(0.5), lambda: update(0.01)))
    (bn,) = find_batch_norms(graph)
    assert bn.training is True
    assert bn.left_alone == "its mean is kept 2 times, in 'bn/moving_mean'"


def test_everything_inside_one_branch_is_told_as_such():
    with zoo.graph() as graph:
        x, training = zoo.rows(), zoo.predicate()
        mean, variance = zoo.moving()

        def train():
            batch = tf.nn.moments(x, [0])
            done = [
                tf.assign_sub(mean, (mean - batch[0]) * RATE),
                tf.assign_sub(variance, (variance - batch[1]) * RATE),
            ]
            with tf.control_dependencies(done):
                return tf.identity(batch[0]), tf.identity(batch[1])

        zoo.normalise(x, *tf.cond(training, train, lambda: (mean + 0, variance + 0)))
    (bn,) = find_batch_norms(graph)
    assert bn.input == "x"
    assert bn.training == "training"
    assert [u.source for u in bn.updates] == ["cond/moments/Squeeze", "cond/moments/Squeeze_1"]
    assert [u.in_branch for u in bn.updates] == [True, True]
    # What the condition hands to the outside.
    assert (bn.mean, bn.variance) == ("cond/Merge", "cond/Merge_1")


def test_everything_inside_a_function_of_the_library_is_told_as_such():
    with zoo.graph(2) as graph:
        x, training = zoo.rows(), zoo.predicate()
        mean, variance = zoo.moving()

        def train():
            batch = tf.nn.moments(x, [0])
            done = [
                mean.assign_sub((mean - batch[0]) * RATE),
                variance.assign_sub((variance - batch[1]) * RATE),
            ]
            with tf.control_dependencies(done):
                return tf.identity(batch[0]), tf.identity(batch[1])

        zoo.normalise(x, *tf.cond(training, train, lambda: (mean + 0, variance + 0)))
    (bn,) = find_batch_norms(graph)
    assert bn.input == "x"
    assert bn.training == "training"
    assert (bn.moving_mean, bn.moving_variance) == ("bn/moving_mean", "bn/moving_variance")
    assert all(u.op.startswith("cond[then_branch]/") for u in bn.updates)
    assert [u.in_branch for u in bn.updates] == [True, True]
    assert (bn.mean, bn.variance) == ("cond", "cond:1")


def test_a_dynamic_momentum_is_told_by_its_tensor():
    with zoo.graph() as graph:
        x = zoo.rows()
        mean, variance = tf.nn.moments(x, [0])
        moving = zoo.moving()
        momentum = tf.placeholder(tf.float32, [], "momentum")
        tf.assign_sub(moving[0], (moving[0] - mean) * (1 - momentum), name="mean_moved")
        tf.assign_sub(moving[1], (moving[1] - variance) * (1 - momentum))
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert bn.momentum == "momentum"
    assert graph.get_operation_by_name(bn.updates[0].rate).type == "Sub"


def test_a_momentum_that_is_a_variable_is_told_though_each_use_reads_it_anew():
    with zoo.graph(resource=True) as graph:
        x = zoo.rows()
        momentum = tf.get_variable("decay", initializer=0.9, trainable=False)
        statistics = tf.nn.moments(x, [0])
        for moving, now in zip(zoo.moving(), statistics):
            tf.assign(moving, moving * momentum + now * (1 - momentum))
        zoo.normalise(x, *statistics)
    (bn,) = find_batch_norms(graph)
    assert graph.get_operation_by_name(bn.momentum).inputs[0].op.name == "decay"
    assert bn.left_alone == bn.finding == ""


def test_an_average_with_num_updates_has_a_dynamic_momentum():
    with zoo.graph() as graph:
        x, step = zoo.rows(), tf.train.get_or_create_global_step()
        mean, variance = tf.nn.moments(x, [0])
        tf.train.ExponentialMovingAverage(0.9, num_updates=step).apply([mean, variance])
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert graph.get_operation_by_name(bn.momentum).type == "Minimum"


def test_different_rates_are_left_alone():
    with zoo.graph() as graph:
        x = zoo.rows()
        mean, variance = tf.nn.moments(x, [0])
        moving = zoo.moving()
        tf.assign_sub(moving[0], (moving[0] - mean) * 0.1)
        tf.assign_sub(moving[1], (moving[1] - variance) * 0.01)
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert bn.left_alone == "mean and variance move at different rates, '0.01' and '0.1'"


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_an_average_that_is_corrected_for_its_start_at_zero_is_one_update(resource):
    with zoo.graph(resource=resource) as graph:
        x = zoo.rows()
        mean, variance = tf.nn.moments(x, [0])
        tf.train.ExponentialMovingAverage(0.9, zero_debias=True).apply([mean, variance])
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert bn.shareable and bn.momentum == 0.9
    mean, variance = bn.updates
    assert bn.moving_mean == mean.variable == "moments/Squeeze/ExponentialMovingAverage"
    assert mean.debias.biased.endswith("ExponentialMovingAverage/biased")
    assert mean.debias.step.endswith("ExponentialMovingAverage/local_step")
    assert len(set(mean.ops + variance.ops)) == 6
    assert find_updates(graph) == []


def test_an_average_that_is_corrected_by_other_numbers_is_left_alone():
    with zoo.graph() as graph:
        x = zoo.rows()
        statistics, moving = tf.nn.moments(x, [0]), zoo.moving()
        for number, (v, s) in enumerate(zip(moving, statistics)):
            biased = zoo.variable("biased%d" % number)
            step = tf.get_variable("step%d" % number, initializer=0.0)
            counted = tf.assign_add(step, 2.0)
            tf.assign(v, tf.assign_sub(biased, (biased - s) * RATE) / (1 - tf.pow(0.9, counted)))
        zoo.normalise(x, *statistics)
    (bn,) = find_batch_norms(graph)
    assert bn.left_alone == "it is corrected for its start at zero in a way that is not known"
    assert bn.moving_mean == "bn/moving_mean"


@pytest.mark.parametrize("moments", sorted(MOMENTS))
@pytest.mark.parametrize("normalisation", sorted(NORMALISATIONS))
def test_every_form_of_a_normalisation_is_one(normalisation, moments):
    with zoo.graph() as graph:
        x = zoo.rows()
        mean, variance = MOMENTS[moments](x)
        gamma, beta = zoo.variable("bn/gamma", 1.0), zoo.variable("bn/beta")
        NORMALISATIONS[normalisation](x, mean, variance, gamma, beta)
        moving = zoo.moving()
        for v, s in zip(moving, (mean, variance)):
            tf.assign_sub(v, (v - s) * RATE)
    (bn,) = find_batch_norms(graph)
    assert (bn.kind, bn.input, bn.gamma, bn.beta) == ("unfused", "x", "bn/gamma", "bn/beta")
    assert bn.epsilon == 1e-5
    assert bn.axis == (1,)
    assert len(bn.updates) == 2
    assert bn.left_alone == bn.finding == ""


def test_neither_the_axes_nor_the_rank_need_be_known():
    with zoo.graph() as graph:
        x = tf.placeholder(tf.float32, None, "x")
        axes = tf.range(tf.rank(x) - 1)
        mean = tf.reduce_mean(x, axes)
        variance = tf.reduce_mean(tf.squared_difference(x, mean), axes)
        for v, s in zip(zoo.moving(), (mean, variance)):
            v.assign_sub((v - s) * RATE)
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert (bn.axis, bn.input, len(bn.updates)) == ((-1,), "x", 2)
    assert bn.left_alone == bn.finding == ""


@pytest.mark.parametrize(
    "cut", [tf.nn.relu, lambda v: tf.maximum(v, 0), lambda v: tf.maximum(0.0, v)]
)
def test_the_noise_below_zero_of_a_difference_of_squares_may_be_cut_off(cut):
    with zoo.graph() as graph:
        x = zoo.rows()
        mean, square = tf.reduce_mean(x, 0), tf.reduce_mean(x * x, 0)
        variance = cut(square - tf.square(mean))
        for v, s in zip(zoo.moving(), (mean, variance)):
            tf.assign_sub(v, (v - s) * RATE)
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert bn.variance == variance.op.name
    assert len(bn.updates) == 2 and bn.left_alone == ""


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("late", [False, True])
def test_who_normalises_by_what_the_batch_has_just_moved_is_left_alone(late, resource):
    """As code that scales observations does; it may also read first."""
    with zoo.graph(resource=resource) as graph:
        x, moving = zoo.rows(), zoo.moving()
        read = [] if late else [v.read_value() for v in moving]
        with tf.control_dependencies(read):
            pairs = zip(moving, tf.nn.moments(x, [0]))
            updates = [tf.assign(v, v * (1 - RATE) + s * RATE) for v, s in pairs]
        with tf.control_dependencies(updates):
            read = read or [v.read_value() for v in moving]
            zoo.normalise(x, *read)
    (bn,) = find_batch_norms(graph)
    assert len(bn.updates) == 2
    reason = "it normalises with its moving statistics after the batch has moved them"
    assert bn.left_alone == (reason if late else "")


def test_a_residual_connection_is_no_beta():
    with zoo.graph() as graph:
        x = zoo.rows()
        mean, variance = tf.nn.moments(x, [0])
        _ = (x - mean) / tf.sqrt(variance + 1e-5) + x
    (bn,) = find_batch_norms(graph)
    assert (bn.gamma, bn.beta) == (None, None)
    assert bn.finding == (
        "no moving average of its mean and variance is found: it may have nothing to normalise "
        "with at inference"
    )


@pytest.mark.parametrize("axes", [[1], [-1]])
def test_a_layer_normalisation_is_none(axes):
    with zoo.graph() as graph:
        x = zoo.rows()
        zoo.normalise(x, *tf.nn.moments(x, axes, keep_dims=True))
    assert find_batch_norms(graph) == []


def test_statistics_that_normalise_nothing_are_no_batch_norm():
    with zoo.graph() as graph:
        for v, s in zip(zoo.moving(), tf.nn.moments(zoo.rows(), [0])):
            tf.assign_sub(v, (v - s) * RATE)
    assert find_batch_norms(graph) == []
    assert [u.variable for u in find_updates(graph)] == ["bn/moving_mean", "bn/moving_variance"]


def test_the_mean_of_pooled_features_is_no_virtual_batch():
    with zoo.graph() as graph:
        pooled = tf.reduce_mean(zoo.images(), [1, 2])
        mean, variance = tf.nn.moments(pooled, [0])
        with tf.variable_scope("bn"):
            moving = [zoo.variable(name, width=3) for name in ("moving_mean", "moving_variance")]
        for v, s in zip(moving, (mean, variance)):
            tf.assign_sub(v, (v - s) * RATE)
        tf.nn.batch_normalization(pooled, mean, variance, None, None, 1e-3)
    (bn,) = find_batch_norms(graph)
    assert bn.input == "Mean"
    assert bn.left_alone == ""
    assert bn.name == "bn"


def test_weighted_rows_are_left_alone():
    with zoo.graph() as graph:
        x = zoo.rows()
        mean, variance = tf.nn.weighted_moments(x, [0], tf.placeholder(tf.float32, [None, 1]))
        for v, s in zip(zoo.moving(), (mean, variance)):
            tf.assign_sub(v, (v - s) * RATE)
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert bn.left_alone == "its rows are weighted"
    assert len(bn.updates) == 2


@pytest.mark.parametrize("half", [0, 1])
def test_an_update_of_one_half_is_found(half):
    with zoo.graph() as graph:
        x = zoo.rows()
        statistics, moving = tf.nn.moments(x, [0]), zoo.moving()
        tf.assign_sub(moving[half], (moving[half] - statistics[half]) * RATE)
        zoo.normalise(x, *statistics)
    (bn,) = find_batch_norms(graph)
    one = ("mean", "variance")[half]
    assert bn.finding == "only the {}'s moving average is found".format(one)


def test_what_lies_in_a_loop_is_left_alone():
    with zoo.graph() as graph:
        x, moving = zoo.rows(), zoo.moving()
        mean, variance = tf.nn.moments(x, [0])

        def body(turn):
            done = [tf.assign_sub(v, (v - s) * RATE) for v, s in zip(moving, (mean, variance))]
            with tf.control_dependencies(done):
                return turn + 1

        tf.while_loop(lambda turn: turn < 3, body, [tf.constant(0)])
        zoo.normalise(x, mean, variance)
    (bn,) = find_batch_norms(graph)
    assert bn.left_alone == "it lies in a loop"
    assert [u.in_branch for u in bn.updates] == [False, False]


FUSED = {"FusedBatchNorm": tf.float32, "FusedBatchNormV2": tf.half, "FusedBatchNormV3": tf.half}


@pytest.mark.parametrize("version", sorted(FUSED))
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_all_versions_of_the_fused_op(version, layout):
    with zoo.graph() as graph:
        dtype = FUSED[version]
        x = tf.placeholder(dtype, [8, 3, 3, 4] if layout == "NHWC" else [8, 4, 3, 3], "x")
        gamma, beta = zoo.variable("bn/gamma"), zoo.variable("bn/beta")
        empty = tf.constant([], tf.float32)
        fused = getattr(raw_ops, version)(
            x=x, scale=gamma, offset=beta, mean=empty, variance=empty, epsilon=1e-4,
            data_format=layout, is_training=True, name="bn/fused",
        )  # fmt: skip
        for v, s in zip(zoo.moving(), fused[1:3]):
            tf.assign_sub(v, (v - s) * RATE)
    (bn,) = find_batch_norms(graph)
    assert (bn.kind, bn.op, bn.input) == ("fused", "bn/fused", "x")
    assert (bn.gamma, bn.beta, bn.epsilon) == ("bn/gamma", "bn/beta", 1e-4)
    assert bn.axis == ((3,) if layout == "NHWC" else (1,))
    assert (bn.mean, bn.variance, bn.bessel) == ("bn/fused:1", "bn/fused:2", True)
    assert bn.left_alone == ""


def test_a_fused_op_that_averages_by_itself_is_left_alone():
    with zoo.graph(resource=True) as graph:
        moving = zoo.moving()
        fused = raw_ops.FusedBatchNormV3(
            x=tf.placeholder(tf.float32, [8, 3, 3, 4]), scale=tf.ones([4]), offset=tf.zeros([4]),
            mean=moving[0], variance=moving[1], is_training=True, name="bn/fused",
            **({"exponential_avg_factor": 0.1} if zoo.TF2 else {})
        )  # fmt: skip
        if not zoo.TF2:  # 1.15 has no such attribute, but may be handed a newer graph
            fused[0].op._set_attr("exponential_avg_factor", tf.AttrValue(f=0.1))
        for v, s in zip(moving, fused[1:3]):
            v.assign(s)
    (bn,) = find_batch_norms(graph)
    assert "makes 'bn/moving_mean' of its statistics in a way that is not known" in bn.left_alone
    assert not bn.shareable and bn.finding == ""


def test_a_variance_without_bessels_factor_stays_each_workers():
    with zoo.graph() as graph:
        moving = zoo.moving()
        fused = tf.nn.fused_batch_norm(
            tf.placeholder(tf.float32, [8, 3, 3, 4]), tf.ones([4]), tf.zeros([4])
        )
        for v, s in zip(moving, (fused[1], fused[2] * (71 / 72.0))):
            tf.assign_sub(v, (v - s) * RATE)
    (bn,) = find_batch_norms(graph)
    assert [u.variable for u in bn.updates] == ["bn/moving_mean"]
    assert bn.finding == "only the mean's moving average is found"
