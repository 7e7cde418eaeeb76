"""Facts on a model's training from its files, for `parity.diagnose`: why do two models differ?

read.py            `migrate.read_facts`: which of the others reads a path; or a file that was
                   written by hand
checkpoint.py      a TensorFlow checkpoint and its MetaGraph
converted.py       the output of `semisync convert`
slots.py           an optimizer's initial state and progress
"""
