"""A program that is asked for figures, line by line, often under another Python.

`Side` is the end that asks; `answer` is the program's own. Both are JSON, a line each. What a
program says before the first question, such as its versions, is its first line.
"""

import json
import os
import subprocess
import sys


class Side:
    """A module that runs and waits.

    Args:
        module: its name, with its words.
        python: the interpreter.
        environment: variables to set.

    Attributes:
        said: its first line.
    """

    def __init__(self, module, *words, python=sys.executable, **environment):
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", module, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        )
        self.said = self.hear()

    def hear(self):
        """Returns the program's next line."""
        line = self._process.stdout.readline()
        if not line:
            raise EOFError("{} ended without an answer".format(self._process.args[4]))
        return json.loads(line)

    def ask(self, *question):
        """Asks a question, and returns the answer."""
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self.hear()

    def end(self):
        """Ends the program."""
        self._process.stdin.close()
        self._process.wait()


def say(value):
    """Writes a line to the end that asks."""
    print(json.dumps(value), flush=True)


def answer(said, call):
    """Says the first line, then the call's answer to each question until there are no more."""
    say(said)
    for line in sys.stdin:
        say(call(*json.loads(line)))
