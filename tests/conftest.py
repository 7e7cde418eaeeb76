"""What all tests share: threads, examples, the order of the files, interpreters at the ready."""

import collections
import gc
import os
import signal
import sys

import hypothesis
import pytest

from tests.support import fork_server
from tests.support.require import LONG

# The threads of OpenMP spin while they wait, and take the cores from the other processes: torch's
# small steps cost four times as much processor time with two threads as with one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run, however slow the machine is: a failure is a change's, not chance.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=30 if LONG else 15,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")
# For tests that are to fail (tests.mutations), where the smallest example is no use.
hypothesis.settings.register_profile(
    "unshrunk",
    parent=hypothesis.settings.get_profile("suite"),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)

# A shell has what it starts in the background ignore Ctrl-C, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files that wait or compute for minutes come first, so that at the end no process is left alone
# with one of them while the others have nothing to do. The zoo's come before all: they have its
# models trained, which other files would wait for together.
LONGEST = (
    "tests/model/zoo/test_zoo.py",
    "tests/drawn/test_drawn.py",
    "tests/wrap/test_faults.py",
    "tests/jobs/test_jobs.py",
    "tests/model/test_load_model.py",
    "tests/model/training/test_parity.py",
    "tests/model/training/test_wrapped.py",
    "tests/docs/test_docs.py",
    "tests/demo/test_demo.py",
    "tests/migration/test_migrate.py",
    "tests/cluster/test_chaos.py",
    "tests/cluster/launch/test_tensorflow.py",
    "tests/notebooks/test_notebooks.py",
    "tests/benchmarks/test_thirty_days.py",
    "tests/benchmarks/test_semi_sync.py",
    "tests/scoring/test_graphs.py",
)


# Where a test reads what either TensorFlow wrote, these stand for 2.x among its parameters, or in
# its name where the parameter is a function.
OF_2 = {
    "2.x", "TensorFlow 2", "tf2", "tf2_checkpoints", "tf2_trained", "jobs_tf2", "zoo_tf2",
}  # fmt: skip


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "one_tensorflow: does not depend on TensorFlow's version; make test runs it on 1.15",
    )
    config.addinivalue_line(
        "markers",
        "again: what TensorFlow 1.15 has shown; make test LONG=1 runs it on 2.x too",
    )
    config.addinivalue_line(
        "markers",
        "long: a whole system, its parts tested elsewhere, or one more of a kind; make test LONG=1",
    )
    config.addinivalue_line(
        "markers", "few(N): all of its cases but the first N that are not long are so too"
    )


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST)}
    cases = collections.Counter()
    for item in items:
        few, test = item.get_closest_marker("few"), item.nodeid.partition("[")[0]
        if hasattr(item, "callspec") and not OF_2.isdisjoint(
            [*map(str, item.callspec.params.values()), *item.callspec.id.split("-")]
        ):
            item.add_marker(pytest.mark.again)
        elif few is not None and item.get_closest_marker("long") is None:
            cases[test] += 1
            if cases[test] > few.args[0]:
                item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish():
    """What is imported stays, and need not be searched for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def interpreters():
    """A folder with `python` and `semisync`, forked from one that has imported the frameworks."""
    return fork_server.forked(sys.executable)


def pytest_unconfigure():
    fork_server.end_all()
