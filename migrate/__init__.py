"""From a TensorFlow parameter-server checkpoint to TorchRec, without TensorFlow.

    checkpoint = migrate.open_checkpoint("model.ckpt-40000")
    plan = migrate.plan(checkpoint)                       # tables, slots, dense variables
    manifest = migrate.convert(plan, "converted")         # a torch Distributed Checkpoint

1. `open_checkpoint` and `open_hash_tables` read in place and in bounded memory, every byte checked.
2. `plan` decides what each tensor becomes; what is ambiguous is refused, never guessed.
3. `convert` streams the tensors into `targets`; the result appears when it is whole.
4. `migrate.verification.verify` reads both sides again and compares every row.
5. `migrate.torchrec` builds and fills the modules; `load_model` makes the whole model of a graph.
   `build_training` goes on with its training, `build_optimizer` with a loss of one's own.
6. `write_checkpoint` goes back: a TensorFlow checkpoint of what torch has.

Importing this package imports neither TensorFlow nor torch.
"""

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.model import TensorInfo
from migrate.conversion.convert import convert
from migrate.hash_tables.lookup import Sentinels
from migrate.hash_tables.model import HashTable
from migrate.manifest.model import Manifest, read_manifest
from migrate.model.load import load_model
from migrate.model.training.build import build_optimizer, build_training
from migrate.open import open_checkpoint, open_hash_tables
from migrate.planning.model import Plan
from migrate.planning.planner import plan
from migrate.to_tensorflow.api import write_checkpoint

__all__ = [
    "Checkpoint",
    "HashTable",
    "Manifest",
    "Plan",
    "Sentinels",
    "TensorInfo",
    "build_optimizer",
    "build_training",
    "convert",
    "load_model",
    "open_checkpoint",
    "open_hash_tables",
    "plan",
    "read_manifest",
    "write_checkpoint",
]
