# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .batch_norm.find import find_batch_norms as find_batch_norms
from .batch_norm.find import find_updates as find_updates
from .batch_norm.found import BatchNorm as BatchNorm
from .batch_norm.found import Update as Update
from .graph.nodes import Nodes as Nodes
from .metagraph.report import Report as Report
from .metagraph.semi_synchronize import semi_synchronize as semi_synchronize
from .patterns.language import Match as Match
from .patterns.language import match as match
