"""Once this is imported, TensorFlow says nothing of deprecated arguments.

To find them it binds the arguments anew in each call of most functions that make ops: a tenth of
the time in which a graph is built.
"""

from tensorflow.python.util import deprecation

from semisync.cluster.forked import PRELOADED

PRELOADED.append(__name__)  # of the tests' clusters, too
deprecation._PRINT_DEPRECATION_WARNINGS = False
