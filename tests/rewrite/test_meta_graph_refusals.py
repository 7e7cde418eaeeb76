"""What cannot be rewritten is refused in one sentence."""

import pytest

import graph_rewrite
import semisync
from semisync.common.compat import VariableDef, tf
from semisync.common.errors import BadInput, UsageError
from tests.rewrite.exported import export, rewrite, sgd
from tests.wrap.one_process import M

pytestmark = pytest.mark.one_tensorflow


def refusal(build, resource=False, **options):
    """The sentence with which a job's MetaGraph is refused."""
    with pytest.raises(BadInput) as error:
        rewrite(export(build, resource), **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_inference_graph():
    assert "no op of the graph trains" in refusal(lambda model, wrap: model.loss())


def test_a_hash_table_of_tfra():
    exported = export(sgd)
    exported.meta.graph_def.node.add(op="TFRA>CuckooHashTableInsert", name="into_table")
    with pytest.raises(BadInput, match="into_table trains a hash table of TFRA"):
        rewrite(exported)


def test_a_rule_that_is_not_known():
    def build(model, wrap):
        loss = model.loss()
        kernel = model.variables("kernel")[0]
        gradient = tf.gradients(loss, kernel)[0]
        new = tf.assign(kernel, kernel - tf.sign(gradient), name="step")
        with tf.control_dependencies([new]):
            return tf.assign_add(model.step, 1).op

    sentence = refusal(build)
    assert "the op step of type Assign makes the trainable variable kernel" in sentence
    assert "by a rule that is not known" in sentence


def test_a_rule_with_slots_of_its_own():
    def build(model, wrap):
        loss = model.loss()
        kernel = model.variables("kernel")[0]
        slot = tf.get_variable("slot", [12, 1], trainable=False)
        moved = tf.assign(slot, 0.9 * slot + tf.gradients(loss, kernel)[0])
        new = tf.assign_sub(kernel, 0.1 * moved, name="step")
        with tf.control_dependencies([new]):
            return tf.assign_add(model.step, 1).op

    assert "step trains kernel by a rule that is not known, with slot" in refusal(build)


@pytest.mark.parametrize("resource", [False, True])
def test_a_table_like_the_trained_one_is_no_slot_unless_a_batch_moves_it(resource):
    def build(moved):
        with tf.Graph().as_default(), tf.variable_scope("", use_resource=resource):
            ids = tf.placeholder(tf.int64, [None])
            table = tf.get_variable("table", [8, 2])
            frozen = tf.get_variable("frozen", [8, 2], trainable=False)
            read = frozen
            if moved:
                read = tf.scatter_add(frozen, ids, tf.ones([tf.size(ids), 2]))
            both = tf.nn.embedding_lookup(table, ids) * tf.nn.embedding_lookup(read, ids)
            step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(0.1)
            optimizer.minimize(tf.reduce_sum(both), global_step=step)
            return tf.train.export_meta_graph()

    _, report = graph_rewrite.semi_synchronize(build(moved=False), M)
    assert len(report.trained) == 1
    with pytest.raises(BadInput, match="by a rule that is not known, with frozen"):
        graph_rewrite.semi_synchronize(build(moved=True), M)


@pytest.mark.parametrize("depth", [1, 2])
def test_training_inside_a_condition(depth):
    def inside(train):
        warm = tf.less(tf.train.get_global_step(), 10)
        return lambda: tf.cond(warm, train, lambda: tf.no_op())

    def build(model, wrap):
        loss = model.loss()
        step = tf.train.AdagradOptimizer(0.1)
        gradients = step.compute_gradients(loss)

        def train():
            return step.apply_gradients(gradients, model.step)

        for _ in range(depth):
            train = inside(train)
        trained = train()
        # It may name an op of the branch's function, which no graph has.
        tf.get_default_graph().clear_collection(tf.GraphKeys.TRAIN_OP)
        return trained

    assert "trains inside a tf.cond, a loop or a function" in refusal(build, resource=True)


def test_two_ways_to_train_until_one_is_named():
    names = []

    def build(model, wrap):
        loss = model.loss()
        one = tf.train.AdagradOptimizer(0.1).minimize(
            loss, global_step=model.step, var_list=model.variables("kernel"), name="one"
        )
        two = tf.train.AdagradOptimizer(0.1).minimize(
            loss, global_step=model.step, var_list=model.variables("bias"), name="two"
        )
        names.extend([one.name, two.name])
        return one

    assert "trains in 2 ways" in refusal(build)
    _, report = graph_rewrite.semi_synchronize(export(build).meta, M, train_op=names[0])
    assert [trained.variable for trained in report.trained] == ["kernel"]
    assert (
        "1 variables are trained by another train op: asynchronous as before (bias)" in report.left
    )
    assert not any("bias" in sentence for sentence in report.left if "no gradient" in sentence)
    assert "no op 'three'" in refusal(build, train_op="three")


def test_gradients_that_come_after_training():
    def build(model, wrap):
        loss = model.loss()
        one = tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=model.variables("kernel"))
        with tf.control_dependencies([one]):
            return sgd(model, wrap)

    assert "some gradients are computed after" in refusal(build)


def test_a_graph_that_is_rewritten_already():
    with pytest.raises(BadInput, match="rewritten already"):
        rewrite(rewrite(export(sgd)))


def test_the_graph_of_a_job_that_wraps_its_optimizer():
    def build(model, wrap):
        return sgd(model, lambda optimizer: semisync.GlobalBatchOptimizer(optimizer, M))

    assert "semi-synchronously already: export the job without it" in refusal(build)


def test_a_graph_in_which_an_op_is_missing():
    meta = export(sgd).meta
    meta.graph_def.node.add(name="lost", op="Identity", input=["nowhere:1"])
    with pytest.raises(BadInput, match="the graph has no op 'nowhere', which others need"):
        graph_rewrite.semi_synchronize(meta, M)


def test_a_graph_with_two_ops_of_one_name():
    meta = export(sgd).meta
    meta.graph_def.node.add(name="kernel", op="NoOp")
    with pytest.raises(BadInput, match="the graph has two ops 'kernel'"):
        graph_rewrite.semi_synchronize(meta, M)


def test_a_variable_whose_op_is_missing():
    meta = export(sgd).meta
    collection = meta.collection_def[tf.GraphKeys.TRAINABLE_VARIABLES].bytes_list.value
    collection.append(VariableDef(variable_name="nowhere:0").SerializeToString())
    with pytest.raises(BadInput, match="the graph has no variable 'nowhere'"):
        graph_rewrite.semi_synchronize(meta, M)


def test_options_that_make_no_sense():
    with pytest.raises(UsageError, match="batches_per_step is"):
        rewrite(export(sgd), batches_per_step=0)
