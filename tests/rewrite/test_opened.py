"""Functions laid open, and the guards of what lies in them and in branches of version 1."""

from graph_rewrite import Nodes
from graph_rewrite.graph.control_flow import LOOP, Guard, Guards
from graph_rewrite.graph.functions import home, open_functions, top
from semisync.common.compat import tf
from tests.rewrite import zoo


def nested(control_flow):
    """A graph with one Neg in the branch of `two` within the branch of `one`."""
    with zoo.graph(control_flow) as graph:
        x = zoo.rows()
        one, two = (tf.placeholder(tf.bool, [], name) for name in ("one", "two"))
        y = tf.cond(one, lambda: tf.cond(two, lambda: x, lambda: -x), lambda: x)
        tf.identity(y, "outer")
    return open_functions(graph)


def the_inner(nodes):
    """Its name: a function may give it another one."""
    (found,) = [node.name for node in nodes if node.op == "Neg"]
    return found


def test_the_guards_are_the_same_under_both_kinds_of_control_flow():
    for control_flow in (1, 2):
        nodes = nested(control_flow)
        guards = Guards(nodes)
        assert guards.of(the_inner(nodes)) == {Guard("one", True), Guard("two", False)}
        assert guards.of("outer") == guards.of("x") == frozenset()
        assert guards.lift(nodes[the_inner(nodes)].input[0]) == "x"


def test_what_is_made_in_a_branch_is_lifted_to_what_the_branch_hands_out():
    nodes = nested(1)
    assert Guards(nodes).lift(the_inner(nodes)) == "cond/Merge"
    nodes = nested(2)
    assert Guards(nodes).lift(the_inner(nodes)) == "cond"


def test_the_name_of_a_node_in_a_function_tells_where_it_lies():
    nodes = nested(2)
    name = the_inner(nodes)
    assert top(name) == "cond"
    call, label = home(name)
    assert label == "else_branch"
    assert home(call)[1] == "then_branch"
    assert home("x") is None


def test_a_body_takes_what_its_call_takes_and_gives_what_its_call_gives():
    nodes = nested(2)
    for node in nodes:
        for tensor in node.input:
            assert nodes.maker(tensor) is not None
    assert len(nodes.results["cond"]) == 2


def test_without_functions_nothing_is_added():
    with zoo.graph() as graph:
        tf.identity(zoo.rows())
    assert list(open_functions(graph).by_name) == list(Nodes.of(graph).by_name)


def test_both_kinds_of_loops_guard_what_lies_in_them():
    for control_flow in (1, 2):
        with zoo.graph(control_flow) as graph:
            turns = tf.while_loop(
                lambda turn: turn < 3, lambda turn: 2 - tf.negative(turn), [tf.constant(0)]
            )
            tf.identity(turns, "after")
        nodes = open_functions(graph)
        guards = Guards(nodes)
        name = the_inner(nodes)
        assert guards.looped(name)
        assert [guard.value for guard in guards.of(name)] == [LOOP]
        assert guards.of("after") == frozenset()


def test_the_gradient_of_what_enters_a_loop_lies_behind_the_gradients_loop():
    with zoo.graph() as graph:
        x = zoo.rows()
        _, y = tf.while_loop(
            lambda turn, _: turn < 3, lambda turn, y: (turn + 1, y * y), [tf.constant(0), x]
        )
        (gradient,) = tf.gradients(y, x, gate_gradients=True)  # as an Optimizer asks for it
        tf.identity(gradient, "after")
    nodes = Nodes.of(graph)
    leaving = nodes.maker(nodes["after"].input[0])
    assert (leaving.op, nodes.maker(leaving.input[0]).op) == ("Exit", "Identity")
    assert Guards(nodes).of("after") == frozenset()


def test_a_function_that_calls_itself_is_opened_once():
    with zoo.graph(2) as graph:
        tf.cond(zoo.predicate(), lambda: 1, lambda: 2, name="cond")
    graph_def = graph.as_graph_def()
    function = graph_def.library.function[0]
    again = function.node_def.add()
    again.CopyFrom([node for node in graph_def.node if node.op in ("If", "StatelessIf")][0])
    again.name = "again"
    again.input[0] = function.node_def[0].name + ":output:0"
    assert len(open_functions(graph_def)) < 50
