# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .checkpoint.checkpoint import Checkpoint as Checkpoint
from .checkpoint.tensor_info import TensorInfo as TensorInfo
from .conversion.convert import convert as convert
from .facts.read import read_facts as read_facts
from .hash_tables.hash_table import HashTable as HashTable
from .hash_tables.lookup import Sentinels as Sentinels
from .manifest.manifest import Manifest as Manifest
from .manifest.manifest import read_manifest as read_manifest
from .model.load import load_model as load_model
from .model.training.build import build_optimizer as build_optimizer
from .model.training.build import build_training as build_training
from .open import open_checkpoint as open_checkpoint
from .open import open_hash_tables as open_hash_tables
from .planning.plan import Plan as Plan
from .planning.planner import plan as plan
from .scoring.on_spark import score_dataframe as score_dataframe
from .to_tensorflow.api import write_checkpoint as write_checkpoint
