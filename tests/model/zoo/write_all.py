"""Writes the models of the zoo that this TensorFlow can build: python write_all.py FOLDER [--some].

A script for `tests.support.written`; `write` is the program for people.
"""

import pathlib
import sys

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[3])
    from tests.model.zoo import write

    write.write(write.names(some="--some" in sys.argv), sys.argv[1])
