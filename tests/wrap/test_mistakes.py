"""Every mistake is reported in one true sentence."""

import contextlib
import threading

import numpy as np
import pytest

import semisync
from semisync.cluster import session as starting
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError, UsageError
from tests.wrap.one_process import PATIENCE, Job


def sgd():
    return tf.train.GradientDescentOptimizer(0.1)


def wrapped(optimizer=None, **options):
    return semisync.GlobalBatchOptimizer(optimizer or sgd(), 2, **options)


def variable():
    return tf.get_variable("v", initializer=1.0)


def elastic():
    """An optimizer that trains copies: of its class's name, which TensorFlow 2 lacks."""
    return type("ElasticAverageOptimizer", (tf.train.GradientDescentOptimizer,), {})(0.1)


def of_unknown_shape():
    value = tf.placeholder_with_default([1.0], None)
    loss = tf.reduce_sum(tf.Variable(value, validate_shape=False, name="any"))
    return wrapped().minimize(loss, global_step=tf.train.get_or_create_global_step())


def transposed():
    step = tf.train.get_or_create_global_step()
    kernel = tf.get_variable("kernel", [2, 3])
    return wrapped().apply_gradients([(tf.zeros([3, 2]), kernel)], global_step=step)


def of_a_local_variable():
    own = tf.get_local_variable("own", initializer=1.0)
    return wrapped().minimize(own, var_list=[own])


def minimize(optimizer, step=None):
    return optimizer.minimize(variable(), global_step=step)


@contextlib.contextmanager
def one_sentence(says):
    with pytest.raises(UsageError, match=says) as error:
        yield
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: semisync.GlobalBatchOptimizer(sgd(), 0), "whole number of 1 or more, not 0"),
        (lambda: semisync.GlobalBatchOptimizer(sgd(), 1.5), "not 1.5"),
        (lambda: semisync.GlobalBatchOptimizer(sgd(), True), "not True"),
        (lambda: wrapped(staleness=4), r"Threshold\(4\)"),
        (lambda: wrapped(staleness=semisync.Threshold), r"such as semisync.Threshold\(4\)"),
        (lambda: wrapped("sgd"), "not 'str'"),
        (lambda: wrapped(tf.train.AdagradOptimizer), r"is a class: pass AdagradOptimizer\(...\)"),
        (lambda: wrapped(tf.keras.optimizers.SGD(0.1)), "same name from tf.compat.v1.train"),
        (lambda: wrapped(tf.train.SyncReplicasOptimizer(sgd(), 2)), "aggregates already"),
        (lambda: wrapped(elastic()), "train a copy of the variables: wrap the optimizer inside it"),
        (of_unknown_shape, "the variable any has the shape <unknown>"),
        (transposed, r"the gradient of kernel has the shape \(3, 2\), and the variable \(2, 3\)"),
        (of_a_local_variable, "the variable own is trained and in the collection LOCAL_VARIABLES"),
        (lambda: semisync.Threshold(-1), "0 or more, not -1"),
        (lambda: wrapped().make_session_run_hook(True, patience=3), "4 or more, since .*, not 3"),
        (lambda: wrapped().make_session_run_hook("worker0"), "True or False, not 'worker0'"),
        (lambda: minimize(wrapped()), "global_step="),
        (lambda: minimize(wrapped(), tf.constant(0)), "an integer variable of shape"),
        (lambda: minimize(wrapped(), tf.Variable(0.0)), "an integer variable of shape"),
        (lambda: wrapped().apply_gradients([]), "no variable has"),
    ],
)
def test_in_an_argument(make, says):
    with tf.Graph().as_default(), one_sentence(says):
        make()


@pytest.mark.parametrize("yes", [True, 1])
def test_is_chief_may_be_a_number(yes):
    with tf.Graph().as_default():
        assert wrapped().make_session_run_hook(yes).is_chief is True


def test_eager_execution():
    # Both TensorFlows train graphs here; what is eager is this block alone.
    from tensorflow.python.eager import context

    with context.eager_mode(), one_sentence("call tf.compat.v1.disable_v2_behavior"):
        wrapped().minimize(lambda: None)


@pytest.mark.parametrize("by", ["minimize", "apply_gradients"])
def test_an_argument_that_the_wrapped_optimizer_does_not_take(by):
    with tf.Graph().as_default(), one_sentence("is given decay_var_list, which its apply_grad"):
        optimizer, own = wrapped(), variable()
        given = own if by == "minimize" else optimizer.compute_gradients(own)
        getattr(optimizer, by)(given, decay_var_list=[])


def test_a_tf_function():
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("w", initializer=1.0, use_resource=True)

        @tf.function(autograph=False)
        def train():
            return wrapped().apply_gradients([(weight * 2, weight)], global_step=step)

        with one_sentence("inside a tf.function"):
            train()


def test_a_distribution_strategy():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    says = one_sentence(r"outside of MirroredStrategy.*scope\(\)")
    with tf.Graph().as_default(), strategy.scope(), says:
        wrapped().compute_gradients(tf.constant(1.0))


def test_synchronous_replicas_around_it():
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        around = tf.train.SyncReplicasOptimizer(wrapped(), 2)
        with one_sentence("leave SyncReplicasOptimizer out"):
            around.minimize(variable(), global_step=step)


@pytest.mark.parametrize(
    "name",
    [
        "chief_init_op",
        "local_step_init_op",
        "ready_for_local_init_op",
        "get_chief_queue_runner",
        "get_init_tokens_op",
    ],
)
def test_what_a_supervisor_asks_for(name):
    with tf.Graph().as_default(), one_sentence(
        "needs no {}.*MonitoredTrainingSession".format(name)
    ):
        getattr(wrapped(), name)
    with tf.Graph().as_default():
        assert not hasattr(wrapped(), name)


def test_an_attribute_that_does_not_exist():
    with tf.Graph().as_default(), pytest.raises(AttributeError, match="no attribute 'nothing'"):
        wrapped().nothing  # noqa: B018


def test_a_hook_without_training():
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        hook = wrapped().make_session_run_hook(True)
        with one_sentence("applies no gradients in the session's graph"):
            tf.train.MonitoredTrainingSession(hooks=[hook])


def test_a_chief_that_never_initialises():
    with tf.Graph().as_default():
        variable()
        with pytest.raises(SemisyncError, match=r"in 0 s: 1 of 1 are missing, such as v$"):
            semisync.wait_until_initialised("", None, timeout=0.1)


def test_parameter_servers_that_do_not_answer(monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(tf.Session, "run", lambda *_: released.wait(PATIENCE))
    monkeypatch.setattr(starting, "GRACE", 0.1)
    with tf.Graph().as_default(), pytest.raises(SemisyncError, match="no answer from the param"):
        variable()
        semisync.wait_until_initialised("", None, timeout=0.1)
    released.set()


def test_training_twice_in_one_graph():
    with tf.Graph().as_default():
        step, optimizer = tf.train.get_or_create_global_step(), wrapped()
        loss = variable()
        optimizer.minimize(loss, global_step=step)
        with one_sentence("already applies gradients in this graph"):
            optimizer.minimize(loss, global_step=step)


def test_a_plain_session():
    job = Job()
    with job.graph.as_default(), tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in a plain tf.Session"):
            session.run(job.train_op, {job.x: 1.0})


@pytest.mark.skipif(
    not hasattr(tf, "estimator"), reason="Keras of TensorFlow 2.x takes no optimizer of tf.train"
)
def test_the_fit_of_keras():
    with tf.Graph().as_default(), tf.Session().as_default():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
        model.compile(optimizer=wrapped(), loss="mse")
        with pytest.raises(tf.errors.InvalidArgumentError, match="plain tf.Session or Keras"):
            model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)


@pytest.mark.parametrize(
    "policy, says",
    [
        (lambda s: tf.cast(tf.not_equal(s, 3.0), tf.float32), "staleness 3 with 0 and one of .* 4"),
        (lambda s: 2.0 + 0.0 * s, "with 2.0: a weight is a number from 0 to 1"),
        (lambda s: s / 0.0, "with nan"),
        (lambda s: tf.constant(1.0), "one weight per staleness"),
    ],
)
def test_a_function_that_is_no_staleness_policy(policy, says):
    with one_sentence(says), Job(staleness=policy).session():
        pass


@pytest.mark.parametrize("device", ["/job:worker/task:1", None])
def test_a_variable_that_every_worker_has_for_itself(device):
    with tf.Graph().as_default(), tf.device("/job:worker/task:1"):
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
        with tf.device(device):
            weight = tf.get_variable("w", initializer=1.0)
        opt = semisync.GlobalBatchOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
        with one_sentence("w is on '{}', this worker's own place".format(device or "")):
            opt.minimize(weight * weight, global_step=step)


def test_a_policy_that_finds_no_variable(monkeypatch):
    said = []
    monkeypatch.setattr(tf.logging, "warning", lambda text, *values: said.append(text % values))
    Job(policy=[("embedding", "async"), ("w", "semi-sync")])
    assert len(said) == 1
    assert "'embedding' finds none of the 2 variables" in said[0]
