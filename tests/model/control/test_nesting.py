"""Every nesting of branches and loops to depth three gives what TensorFlow gives.

A longer campaign: `python tests/model/control/write_programs.py FOLDER 0 1000 2`, with the Python
of either TensorFlow, and `python -m tests.model.control.compare FOLDER`.
"""

import itertools
import pathlib
import random
import tempfile

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("tensorflow")
from tests.model.control import graphs, programs
from tests.model.control.compare import check
from tests.support.control_flow import control_flow
from tests.support.require import tf1_python
from tests.support.written import written

FORMS = {1: "dataflow", 2: "functions"}
_WRITER = pathlib.Path(__file__).with_name("write_programs.py")
_OF_1 = range(12)


@pytest.mark.parametrize("version", FORMS, ids=FORMS.get)
@settings(phases=[Phase.generate])
@given(data=st.data())
@pytest.mark.long
def test_of_tensorflow_2(version, data):
    program = programs.draw(lambda options: data.draw(st.sampled_from(options)))
    with tempfile.TemporaryDirectory() as folder, control_flow(version):
        graphs.keep(program, folder + "/program")
        check(folder + "/program")


@pytest.fixture(scope="module", params=FORMS, ids=FORMS.get)
def of_1(request):
    """The folder of the programs of `_OF_1`, by TensorFlow 1.15."""
    given = [str(_OF_1.start), str(len(_OF_1)), str(request.param)]
    return written(tf1_python(), _WRITER, *given, beside=["graphs.py", "programs.py"])


@pytest.mark.few(10)
@pytest.mark.parametrize("number", _OF_1)
def test_of_tensorflow_1(of_1, number):
    check(of_1 / str(number))


def test_the_programs_have_every_kind_in_every_other():
    drawn = [programs.draw(random.Random(number).choice) for number in range(2000)]
    assert set().union(*map(programs.nestings, drawn)) >= set(
        itertools.product(programs.KINDS, repeat=3)
    )
