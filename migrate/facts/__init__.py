"""Facts on a model's training from its files, for `parity.diagnose`: why do two models differ?

read.py            `migrate.read_facts`: chooses the reader of a path; reads files written by hand
checkpoint.py      a TensorFlow checkpoint and its MetaGraph
converted.py       the output of `semisync convert`
slot_samples.py    samples of an optimizer's slots: initial values, size of the denominators
"""
