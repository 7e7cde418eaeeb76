"""The jobs of forms, trained by TensorFlow 1.15 and 2.x once a version of their code."""

import hashlib
import pathlib
import sys

from tests.forms.every import FORMS
from tests.support.require import ROOT, tf1_python
from tests.support.written import written

_WRITER = pathlib.Path(__file__).with_name("write_forms.py")
_OTHERS = {"doors.py", "read.py", "table.py", "test_forms.py"}
_ELSEWHERE = ("tests/support/variables.py", "tests/rewrite/zoo.py")


def forms_of(names, version=1):
    """{form's name: its folder} of those of the names that this TensorFlow has."""
    names = [name for name in names if FORMS[name].only in (0, version)]
    beside = {path.name for path in _WRITER.parent.glob("*.py")} - _OTHERS - {_WRITER.name}
    digest = hashlib.sha256(b"".join((ROOT / path).read_bytes() for path in _ELSEWHERE))
    python = tf1_python() if version == 1 else sys.executable
    given = {"elsewhere.sha256": digest.hexdigest().encode()}
    folder = written(python, _WRITER, *names, beside=sorted(beside), given=given)
    return {name: folder / name for name in names}
