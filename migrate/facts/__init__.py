"""What a model's files tell of its training, for `parity.diagnose`: why do two models differ?

read.py            `migrate.read_facts`: which of the others reads a path
checkpoint.py      a TensorFlow checkpoint and its MetaGraph
converted.py       what `semisync convert` wrote
settings_file.py   a file that was written by hand
slots.py           how an optimizer began, and how far it came
"""
