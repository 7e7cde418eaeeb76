"""Building TorchRec modules for a converted checkpoint, and filling them.

ebc = embedding_bag_collection("converted", {"user_embedding": ["user"]})
model = DistributedModelParallel(Model(ebc), ...)     # or no wrapping at all
load(model, "converted")                              # after wrapping: it resets weights
dense = dense_variables("converted")                  # {TensorFlow's name: tensor}
"""

from migrate.torchrec.loading import dense_variables, load
from migrate.torchrec.modules import embedding_bag_collection

__all__ = ["dense_variables", "embedding_bag_collection", "load"]
