"""docs/forms.md: what each door answers to each form. `python -m tests.forms.table` prints it."""

import re
import tempfile

from semisync.common.terminal import say
from tests.forms.doors import DOORS, Form
from tests.forms.every import FORMS
from tests.forms.read import forms_of
from tests.support.require import ROOT

PAGE = ROOT / "docs" / "forms.md"
_HEAD = """\
# The forms of a job

Ways in which jobs are written, one part at a time, and what each door answers: TensorFlow 1.15
trained a small job of each form, and the tests ask all doors about the same files. A number in
brackets is a refusal, in the words of the door, below the table. The page is generated, and a test
compares it with the answers.

- **batch norm**: `graph_rewrite.find_batch_norms` finds the layer, and nothing stands against
  sharing its statistics. Empty where a form has none.
- **rewrite**: `semisync rewrite` makes the MetaGraph semi-synchronous, without a warning. How it
  trains is not compared here.
- **convert**: `semisync convert` tells what becomes of each tensor, without a note.
- **score**: the model.py of `convert --model` gives TensorFlow's outputs.
- **train**: three steps in torch end at TensorFlow's variables and slots, all of them.
- **back**: the checkpoint comes back to TensorFlow bit for bit.
"""


def page(answers):
    """The page of {form's name: {door: answer as `told`}}."""
    parts, kinds = [_HEAD], {}
    for name in FORMS:
        if name in answers:
            kinds.setdefault(FORMS[name].kind, []).append(name)
    for kind, names in kinds.items():
        refusals, rows = [], []
        for name in names:
            cells = [_cell(answers[name][door], refusals) for door in DOORS]
            rows.append("| " + " | ".join([_words(FORMS[name]), *cells]) + " |")
        head = [
            "## " + kind,
            "",
            "| form | " + " | ".join(DOORS) + " |",
            "|---|" + "---|" * len(DOORS),
        ]
        told = ["{}. {}".format(k, text) for k, text in enumerate(refusals, 1)]
        parts.append("\n".join([*head, *rows, *([""] if told else []), *told, ""]))
    return "\n".join(parts)


def stored(text):
    """{form's name: {door: answer}} that a page says."""
    names = {(form.kind, _words(form)): name for name, form in FORMS.items()}
    found = {}
    for part in text.split("\n## ")[1:]:
        lines = part.split("\n")
        refusals = dict(line.split(". ", 1) for line in lines if re.match(r"\d+\. ", line))
        for line in lines:
            cells = [cell.strip() for cell in re.split(r" ?(?<!\\)\| ?", line)[1:-1]]
            if len(cells) == len(DOORS) + 1 and (lines[0], cells[0]) in names:
                answers = [_answer(cell, refusals) for cell in cells[1:]]
                found[names[lines[0], cells[0]]] = dict(zip(DOORS, answers))
    return found


def _words(form):
    text = form.words.replace("|", "\\|")
    return text + " (TensorFlow 2.x)" if form.only == 2 else text


def _cell(answer, refusals):
    if not answer.startswith("no: "):
        return answer
    text = answer[4:]
    if text not in refusals:
        refusals.append(text)
    return "no [{}]".format(refusals.index(text) + 1)


def _answer(cell, refusals):
    return "no: " + refusals[cell[4:-1]] if cell.startswith("no [") else cell


def told(answer):
    """An answer as the page has it: text of a graph is no markup."""
    return re.sub(r"([*_<>#\\\[\]])", r"\\\1", " ".join(answer.split()))


def main():
    """Asks all."""
    found = {}
    for name, folder in forms_of(FORMS).items():
        with tempfile.TemporaryDirectory() as out:
            answers = Form(FORMS[name], folder, out).answers()
        found[name] = {door: told(answer) for door, answer in answers.items()}
    say(*page(found).splitlines())


if __name__ == "__main__":
    main()
