"""Building TorchRec modules for a converted checkpoint, and filling them.

ebc = embedding_bag_collection("converted", {"user_embedding": ["user"]})
model = DistributedModelParallel(Model(ebc), ...)     # or no wrapping at all
ebc = build(read_model("converted"))                  # or by the config that convert wrote
load(model, "converted")                              # after wrapping: it resets weights
EmbeddingShardingPlanner(..., constraints=constraints(config))    # device, UVM, CPU
dense = dense_variables("converted")                  # {TensorFlow's name: tensor}
mc = managed_collision_collection("converted", {"user": ["user"]})   # --ids mch or mpzch, by hand
maps = {"user": id_map("converted", "user")}          # --ids rows
load_optimizer(optimizers.Ftrl(ebc.parameters(), lr=0.1), dict(ebc.named_parameters()), "converted")
"""

from migrate.manifest.model_json import read_model
from migrate.torchrec.building import build, build_optimizer
from migrate.torchrec.ids import IdMap, id_map, map_features
from migrate.torchrec.loading import dense_variables, load
from migrate.torchrec.modules import embedding_bag_collection, managed_collision_collection
from migrate.torchrec.optimizer_state import load_optimizer
from migrate.torchrec.placement import constraints
from migrate.torchrec.weights import combiner_weights

__all__ = [
    "IdMap",
    "build",
    "build_optimizer",
    "combiner_weights",
    "constraints",
    "dense_variables",
    "embedding_bag_collection",
    "id_map",
    "load",
    "load_optimizer",
    "managed_collision_collection",
    "map_features",
    "read_model",
]
