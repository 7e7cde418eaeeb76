"""tf2onnx's own tests with `load_model` in the place of its conversion.

1. `write`, under the Python that has the TensorFlow in question: runs the tests of a checkout of
   https://github.com/onnx/tensorflow-onnx, and instead of converting puts each frozen graph with
   its feeds and what TensorFlow computed into a folder. It needs packages onnx and parameterized,
   and TF_USE_LEGACY_KERAS=1 with tf-keras where TensorFlow's own Keras has no recurrent cells.
2. `check`, under the project's Python: loads each graph, runs it on the feeds and compares with
   TensorFlow's results, each with the tolerances and exceptions that its test states.

    python -m benchmarks.tf2onnx_cases write FOLDER --checkout CHECKOUT
    python -m benchmarks.tf2onnx_cases check FOLDER

A test passes if each of its graphs does. Refused: load_model or the module says what it does not
know, as a BadInput. Wrong: any other result; crashed: any other end, a time-out included.
"""

import argparse
import collections
import os
import pickle
import sys
import types
import unittest

from benchmarks.harness.apart import apart
from benchmarks.tables import table
from semisync.common.errors import BadInput

MODULES = """backend cond cudnn cudnn_compatible_gru custom_rnncell gru grublock loops lstm
    lstmblock seq2seq stacked_lstm string_ops"""
SECONDS = 60  # for a graph
_ENDS = ("passed", "refused", "wrong", "crashed")


def main():
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=["write", "check"])
    parser.add_argument("folder", help="where graphs, feeds and results are")
    parser.add_argument("--checkout", help="of tensorflow-onnx, whose tests write them")
    args = parser.parse_args()
    if args.step == "write":
        write(args.checkout, args.folder)
    else:
        check(args.folder)


def write(checkout, folder):
    """Writes the graphs, feeds and results of all tests into a folder."""
    for name in ("onnxruntime", "onnxruntime_extensions"):  # nothing of theirs runs
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__version__ = "1.99.0"
    del sys.argv[1:]  # tf2onnx reads them too
    sys.path[:0] = [checkout, os.path.join(checkout, "tests")]
    from backend_test_base import Tf2OnnxBackendTestBase
    from tf2onnx import utils

    os.makedirs(folder, exist_ok=True)
    count = collections.Counter()

    def run_test_case(self, func, feed_dict, _, outputs, rtol=1e-7, atol=1e-5, mtol=None, **given):
        session, placed = given.get("as_session", False), given.get("premade_placeholders", False)
        expected, graph, tables = self.freeze_and_run_tf(
            func, feed_dict, outputs, session, placed, given.get("large_model", False)
        )
        test = "{}.{}".format(type(self).__name__, self._testMethodName)
        path = os.path.join(folder, "{}-{}".format(test, count[test]))
        count[test] += 1
        utils.save_protobuf(path + ".pb", graph)
        checks = {
            key: given.get(key, True) for key in ("check_value", "check_shape", "check_dtype")
        }
        case = {"feeds": feed_dict, "outputs": outputs, "expected": expected, "tables": tables}
        case.update(checks, rtol=rtol, atol=atol, mtol=mtol)
        with open(path + ".pickle", "wb") as file:
            pickle.dump(case, file, protocol=4)
        raise _Written  # what follows looks at the ONNX graph, or converts another time

    Tf2OnnxBackendTestBase.run_test_case = run_test_case
    names = ["test_" + name for name in MODULES.split()]
    result = unittest.TestResult()
    for name in names:
        try:
            suite = unittest.defaultTestLoader.loadTestsFromName(name)
        except (AttributeError, ImportError) as error:  # what this TensorFlow does not have
            print("{}: {}".format(name, error))
        else:
            suite.run(result)
    others = [
        "{}: {}".format(test.id(), text.strip().rpartition("\n")[2])
        for test, text in result.errors + result.failures
        if "_Written" not in text
    ]
    print("\n".join(others))
    print(result.testsRun, "tests,", len(result.skipped), "skipped,", len(others), "failed")
    print(len(count), "tests written")


class _Written(Exception):
    """Ends a test once its graph is written."""


def check(folder):
    """Prints each test that did not pass, with the reason, and how many ended in which way."""
    import torch

    import migrate.model.load
    import migrate.runtime.strings  # noqa: F401 (once, rather than in each process)

    torch.set_num_threads(1)
    ends = {}
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".pb")):
        test = name.rpartition("-")[0]
        if ends.get(test, ("passed",))[0] == "passed":
            ends[test] = _in_time(os.path.join(folder, name))
    for test, (end, reason) in sorted(ends.items(), key=lambda one: one[1]):
        if end != "passed":
            print(end, test, reason, sep="\t")
    counts = collections.Counter(end for end, _ in ends.values())
    print(table(["tests", *_ENDS], [[len(ends), *(counts[end] for end in _ENDS)]]))


def _in_time(path):
    """The end of one graph, in a process of its own."""
    try:
        return apart(_end, path, seconds=SECONDS, start="fork")
    except TimeoutError:
        return "crashed", "no end in time"
    except EOFError:
        return "crashed", "the process died"
    except BadInput as error:
        return "refused", str(error).replace(path, "GRAPH").partition("\n")[0]
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}".partition("\n")[0]


def _end(path):
    """passed or wrong, and what is wrong; raises BadInput if something is refused."""
    import numpy
    import torch

    from migrate import load_model

    with open(path[:-3] + ".pickle", "rb") as file:
        case = pickle.load(file)
    model = load_model(path, output=case["outputs"])
    fed = {
        name.partition(":")[0]: array if array.dtype.kind in "OSU" else torch.tensor(array)
        for name, array in case["feeds"].items()
    }
    with torch.no_grad():
        found = model(fed)
    found = found if isinstance(found, (tuple, list)) else [found]
    for name, one, other in zip(case["outputs"], case["expected"], found):
        one, other = numpy.asarray(one), _array(other)
        if case["check_shape"] and one.shape != other.shape:
            return "wrong", f"{name} has the shape {other.shape}, expected {one.shape}"
        if case["check_dtype"] and one.dtype != other.dtype:
            return "wrong", f"{name} has the type {other.dtype}, expected {one.dtype}"
        if case["check_value"] and not _close(one, other, case):
            return "wrong", f"{name} has other values"
    return "passed", ""


def _array(value):
    import numpy

    return value.numpy() if hasattr(value, "numpy") else numpy.asarray(value)


def _close(one, other, case):
    """Whether two arrays are the same within the tolerances of the test."""
    import numpy

    if one.dtype == object:
        return one.tolist() == other.tolist()
    if case["mtol"] is not None:
        one, other = (numpy.clip(array, -case["mtol"], case["mtol"]) for array in (one, other))
    return numpy.allclose(other, one, rtol=case["rtol"], atol=case["atol"], equal_nan=True)


if __name__ == "__main__":
    main()
