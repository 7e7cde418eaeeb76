"""A model's tables under TorchRec's DistributedModelParallel, on the CPU."""

import torch
import torch.distributed as dist
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.sharding_plan import construct_module_sharding_plan
from torchrec.distributed.types import ShardingEnv, ShardingPlan


def distributed(model, shardings, sharder, ranks):
    """Shards the collection `model.ebc` over `ranks`, with shardings by table, as row_wise()."""
    plan = construct_module_sharding_plan(
        model.ebc,
        shardings,
        sharder=sharder,
        local_size=ranks,
        world_size=ranks,
        device_type="cpu",
    )
    return DistributedModelParallel(
        model,
        env=ShardingEnv.from_process_group(dist.group.WORLD),
        device=torch.device("cpu"),
        plan=ShardingPlan({"ebc": plan}),
        sharders=[sharder],
    )
