"""The click model of `write_models` in TorchRec, as a user of `semisync score` would write it."""

import torch
from torchrec import KeyedJaggedTensor

from migrate.torchrec import dense_variables, embedding_bag_collection, load

USERS = 40


class Model(torch.nn.Module):
    def __init__(self, converted):
        super().__init__()
        tables = {"user": ["user"], "genre": ["genres"]}
        self.ebc = embedding_bag_collection(converted, tables)
        load(self.ebc, converted)
        self.kernel = dense_variables(converted)["kernel"]
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, features):
        given = features["sparse"]
        ids = torch.cat([given["user"].values() % USERS, given["genres"].values()])
        pooled = self.ebc(KeyedJaggedTensor(given.keys(), ids, lengths=given.lengths()))
        age = features["age"][:, None] / 50
        layer = torch.cat([pooled["user"], pooled["genres"], age], 1)
        return self.dropout(layer) @ self.kernel


build = Model
