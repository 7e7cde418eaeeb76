"""Writes programs' graphs, drawn by their numbers: write_programs.py FOLDER FIRST COUNT VERSION."""

import os
import random
import sys

import graphs
import programs
from tensorflow.compat import v1 as tf


def main(folder, first, count, version):
    (tf.enable_control_flow_v2 if version == "2" else tf.disable_control_flow_v2)()
    for number in range(int(first), int(first) + int(count)):
        program = programs.draw(random.Random(number).choice)
        graphs.keep(program, os.path.join(folder, str(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
