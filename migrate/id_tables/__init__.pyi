# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .checkpoints import load as load
from .checkpoints import save as save
from .clipping import clip_grad_norm_ as clip_grad_norm_
from .embeddings import IdEmbeddings as IdEmbeddings
from .hash_tables import Filled as Filled
from .hash_tables import fill as fill
from .initializers import Constant as Constant
from .initializers import Initializer as Initializer
from .initializers import Normal as Normal
from .initializers import TruncatedNormal as TruncatedNormal
from .initializers import Uniform as Uniform
from .limits import Limit as Limit
from .table import IdTable as IdTable
