"""Answers the parent until stdin ends. Other output to stdout goes to stderr."""

import os
import sys
import traceback

# `python tf_child` puts the folder itself there; its parent makes it importable as a package.
sys.path[0] = os.path.dirname(os.path.abspath(sys.path[0]))
from tf_child.messages import Refused, receive, send  # noqa: E402
from tf_child.probe import Probe  # noqa: E402
from tf_child.scorer import Scorer  # noqa: E402

del sys.path[0]  # the user's modules' imports are not in this folder


def main():
    # TensorFlow, and the modules that it imports, may write to file descriptor 1.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = sys.stdin.buffer
    try:
        spec, _ = receive(questions)
        opened = Probe(spec) if "fetches" in spec else Scorer(spec)
        described = [taken.describe() for taken in opened.inputs]
        head = {"inputs": described, "batch": opened.batch, "versions": opened.versions()}
        send(answers, head)
        while True:
            message = receive(questions)
            if message is None:
                return
            send(answers, *opened.answer(*message))
    except Refused as error:
        send(answers, {"error": str(error)})
    except Exception as error:  # TensorFlow's kernels and files may raise any error
        traceback.print_exc()
        lines = str(error).strip().splitlines() or [""]
        send(answers, {"error": "{}: {}".format(type(error).__name__, lines[0][:300])})


main()
