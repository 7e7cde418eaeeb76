"""The demo's DeepFM in TorchRec, filled from a converted checkpoint.

`architecture` describes the model; `deepfm` is the same in TensorFlow.
"""

from __future__ import annotations

from typing import Dict, List, Sequence

import numpy as np
import torch
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from migrate.torchrec import dense_variables, embedding_bag_collection, load
from semisync.demo.architecture import BATCH_NORM_EPSILON, DIM, Table, layer_names, tables
from semisync.demo.data.click_log import ClickLog

BATCH_NORM_NAMES = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}


class DeepFM(torch.nn.Module):
    """Click logits from an EmbeddingBagCollection and a dense tower.

    Args:
      ebc: returns DIM numbers per field.
      fields: the features' names.
      hidden: units of each hidden layer.
    """

    def __init__(
        self, ebc: EmbeddingBagCollection, fields: Sequence[str], hidden: Sequence[int]
    ) -> None:
        super().__init__()
        self.ebc = ebc
        self.fields = list(fields)
        widths = [len(fields) * DIM, *hidden]
        self.hidden = torch.nn.ModuleList(
            torch.nn.Linear(*pair) for pair in zip(widths[:-1], widths[1:])
        )
        self.norms = torch.nn.ModuleList(
            torch.nn.BatchNorm1d(width, eps=BATCH_NORM_EPSILON) for width in hidden
        )
        self.output = torch.nn.Linear(widths[-1], 1)

    def forward(self, features: KeyedJaggedTensor) -> torch.Tensor:
        """Logits, float32 [batch]."""
        pooled = self.ebc(features)
        vectors = torch.stack([pooled[field] for field in self.fields], 1)
        linear = vectors[:, :, 0].sum(1)
        factors = vectors[:, :, 1:]
        pairs = 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(1)
        layer = vectors.flatten(1)
        for dense, norm in zip(self.hidden, self.norms):
            layer = torch.relu(norm(dense(layer)))
        return linear + pairs + self.output(layer).squeeze(1)


def from_converted(directory: str, fields: Sequence[str], numeric: int) -> DeepFM:
    """The model with all weights and statistics of the converted checkpoint, ready to score.

    Args:
      directory: the output of `semisync convert`.
      fields, numeric: of the click log that the model was trained on.
    """
    names = {
        table.name.replace("/", "_"): list(table.fields)
        for table in tables(tuple(fields), numeric, partitions=1)
    }
    dense = dense_variables(directory)
    hidden = [dense[f"{name['dense']}/bias"].numel() for name in layer_names()[:-1]]
    model = DeepFM(embedding_bag_collection(directory, names), fields, hidden)
    load(model, directory)
    _load_tower(model, dense)
    return model.eval()


def _load_tower(model: DeepFM, dense: Dict[str, torch.Tensor]) -> None:
    """Fills the tower; TensorFlow's kernels are [in, out], torch's weights [out, in]."""
    linears = [(f"hidden.{i}", layer) for i, layer in enumerate(layer_names()[:-1])]
    state = {}
    for path, layer in [*linears, ("output", layer_names()[-1])]:
        state[path + ".weight"] = dense[layer["dense"] + "/kernel"].T
        state[path + ".bias"] = dense[layer["dense"] + "/bias"]
    for i, layer in enumerate(layer_names()[:-1]):
        for ours, theirs in BATCH_NORM_NAMES.items():
            state[f"norms.{i}.{ours}"] = dense[f"{layer['norm']}/{theirs}"]
    missing = model.load_state_dict(state, strict=False).missing_keys
    assert all(key.startswith("ebc.") or key.endswith("num_batches_tracked") for key in missing)


def features_of(ids: np.ndarray, described: Sequence[Table]) -> KeyedJaggedTensor:
    """One id per field and row: int64 hashes [rows, fields] as rows of their tables."""
    keys: List[str] = [field for table in described for field in table.fields]
    moduli = np.concatenate([np.full(len(table.fields), table.rows) for table in described])
    values = np.mod(ids, moduli).T.reshape(-1)
    return KeyedJaggedTensor(
        keys=keys,
        values=torch.from_numpy(np.ascontiguousarray(values)),
        lengths=torch.ones(values.size, dtype=torch.int64),
    )


@torch.inference_mode()
def score(model: DeepFM, log: ClickLog, size: int = 4096) -> np.ndarray:
    """The click probability of every row, float32 [rows]."""
    described = tables(log.fields, log.numeric, partitions=1)
    parts = [
        torch.sigmoid(model(features_of(log.ids[start : start + size], described))).numpy()
        for start in range(0, log.rows, size)
    ]
    return np.concatenate(parts)
