"""What a form is: one way in which jobs of TensorFlow 1 are written, of one part of a job.

A module of a kind adds its forms by the decorator that `of` returns; each builds the part of a job
that it is about, and `job` builds the rest around it.
"""

import re

FORMS = {}  # by name


class Form:
    """One form.

    Attributes:
        kind: what it is a form of.
        words: what a user would call it.
        part: which part of the job `build` makes, a method of `job.Job`.
        build: function of the `Job` and of what that part is made of.
        resource: whether variables are resources.
        control_flow: the version, 1 or 2.
        only: the TensorFlow, 1 or 2, that has it; 0: either.
        trains: whether its outputs are those of training, always: no placeholder says otherwise.
        name: of its folder.
    """

    def __init__(self, kind, part, words, build, **options):
        self.kind, self.part, self.words, self.build = kind, part, words, build
        self.resource = options.pop("resource", False)
        self.control_flow = options.pop("control_flow", 1)
        self.only, self.trains = options.pop("only", 0), options.pop("trains", False)
        assert not options, options
        self.name = "_".join(re.findall(r"\w+", kind + " " + words))
        while self.name in FORMS:  # "a (b c)" and "(a b) c"
            self.name += "_"


def of(kind, part):
    """A decorator with a form's words and options for the functions of one module."""

    def form(words, **options):
        def add(build):
            made = Form(kind, part, words, build, **options)
            FORMS[made.name] = made
            return build

        return add

    return form
