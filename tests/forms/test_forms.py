"""What one reader knows and another refuses stands on a page, which changes with the answers."""

import pytest

from tests.forms import read
from tests.forms.doors import DOORS, Form
from tests.forms.every import FORMS
from tests.forms.table import PAGE, page, stored, told
from tests.support.require import LONG

# One in so many, of all kinds; of 2.x those of variables and branches as 2.x makes them.
_EACH = 8
SHORT = list(FORMS)[::_EACH]
OF_2 = [name for name, form in FORMS.items() if form.resource]


@pytest.fixture(scope="session")
def jobs():
    """{TensorFlow: {form's name: folder}}, each as asked for the first time."""
    kept = {}

    def folder(version, name):
        if version not in kept:
            names = list(FORMS) if version == 1 else OF_2
            kept[version] = read.forms_of(names if LONG else SHORT, version)
        return kept[version][name]

    return folder


def cases():
    """The forms of each TensorFlow."""
    for version, ids in ((1, "tf1"), (2, "tf2")):
        for name in FORMS if version == 1 else OF_2:
            if FORMS[name].only in (0, version):
                marks = [pytest.mark.long] if version == 2 or name not in SHORT else []
                yield pytest.param(version, name, id="{}-{}".format(ids, name), marks=marks)


@pytest.mark.parametrize(("version", "name"), cases())
def test_the_page_says_what_the_doors_answer(version, name, jobs, tmp_path):
    answers = Form(FORMS[name], jobs(version, name), tmp_path).answers()
    assert not [door for door in DOORS if answers[door].startswith("wrong")], answers
    said = stored(PAGE.read_text())[name]
    found = {door: told(answer) for door, answer in answers.items()}
    if version == 2:  # whose ops have other names
        said, found = ({d: a.partition(":")[0] for d, a in one.items()} for one in (said, found))
    assert found == said


def test_the_page_has_every_form_once():
    text = PAGE.read_text()
    assert set(stored(text)) == set(FORMS)
    assert page(stored(text)) == text
