"""From a TensorFlow parameter-server checkpoint to TorchRec, without TensorFlow.

    checkpoint = migrate.open_checkpoint("model.ckpt-40000")
    plan = migrate.plan(checkpoint)                       # tables, slots, dense variables
    manifest = migrate.convert(plan, "converted")         # a torch Distributed Checkpoint

1. `open_checkpoint` and `open_hash_tables` read in place and in bounded memory, every byte checked.
2. `plan` decides what each tensor becomes; ambiguity is refused, never guessed.
3. `convert` streams the tensors into `targets`; the result appears when it is whole.
4. `migrate.verification.verify` reads both sides again and compares every row.
5. `migrate.torchrec` builds and fills the modules; `load_model` makes the whole model of a graph.
   `build_training` continues its training, `build_optimizer` with a loss of one's own.
6. `write_checkpoint` goes back: a TensorFlow checkpoint of torch's state.

Nothing is imported before it is used: `import migrate` needs no torch, and never TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
