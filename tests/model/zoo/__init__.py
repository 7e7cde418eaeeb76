"""Models as people write them for TensorFlow 1.x, trained on a small log, with what they compute.

`registry.MODELS` names them; `python -m tests.model.zoo.write NAME DIRECTORY` writes one, `read`
reads it; the fixtures `zoo` and `zoo_tf2` write all. They are written to be carried over, not to be
easy to carry over: a converter is not what they were made for. Code of the zoo keeps to Python 3.7.
"""
