"""The towers and the loss of HSTU's authors, from a checkout of their repository, in our loop.

A model of `research/modeling/sequential` of meta-recsys/generative-recommenders takes padded
batches. Each next item has its own draws of negatives, without a correction. Where the data have no
times, all are 0, and the bias by time is one number.
"""

import importlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

from migrate.sequences import Hstu, Packed


def use(checkout):
    """Makes the checkout importable, for `AuthorsModel`."""
    sys.path.insert(0, checkout)
    importlib.import_module("fbgemm_gpu")


class AuthorsModel(nn.Module):
    """The authors' model, with the methods that `ours.run` needs."""

    def __init__(self, count, tower, setting):
        super().__init__()
        self._length, self._items = setting.length, count
        dim, size = setting.dim, setting.dim // setting.heads
        parts = {
            "embedding_module": _of("embedding_modules").LocalEmbeddingModule(count, dim),
            "similarity_module": _of_rails().DotProductSimilarity(),
            "input_features_preproc_module": _of(
                "input_features_preprocessors"
            ).LearnablePositionalEmbeddingInputFeaturesPreprocessor(
                setting.length + 1, dim, setting.dropout
            ),
            "output_postproc_module": _of("output_postprocessors").L2NormEmbeddingPostprocessor(
                dim
            ),
            "embedding_dim": dim,
            "max_sequence_len": setting.length,
            "max_output_len": 1,
            "num_blocks": setting.layers,
            "num_heads": setting.heads,
            "verbose": False,
        }
        if tower == "HSTU":
            self.tower = _of("hstu").HSTU(
                **parts,
                linear_dim=size,
                attention_dim=size,
                normalization="rel_bias",
                linear_config="uvqk",
                linear_activation="silu",
                linear_dropout_rate=setting.dropout,
                attn_dropout_rate=0.0,
            )
        else:
            self.tower = _of("sasrec").SASRec(
                **parts,
                ffn_hidden_dim=dim,
                ffn_activation_fn="relu",
                ffn_dropout_rate=setting.dropout,
            )
        self.tower.device = torch.device("cpu")
        self._negatives = _of("autoregressive_losses").LocalNegativesSampler(
            count, self._table, range(1, count + 1), l2_norm=True, l2_norm_eps=1e-6
        )
        self._loss = _of("losses.sampled_softmax").SampledSoftmaxLoss(
            num_to_sample=setting.count, softmax_temperature=setting.temperature, model=self.tower
        )

    @property
    def _table(self):
        return self.tower._embedding_module._item_emb

    @torch.no_grad()
    def to_ours(self):
        """Our HSTU with the weights of this one; it has no norm at the end."""
        layers = self.tower._hstu._attention_layers
        bias = layers[0]._rel_attn_bias
        found = Hstu(
            self.tower._embedding_dim,
            self.tower._num_heads,
            len(layers),
            bias._max_seq_len,
            len(bias._ts_w),
        )
        found.norm = nn.Identity()
        found.places.copy_(self.tower._input_features_preproc._pos_emb.weight)
        for own, theirs in zip(found.layers, layers):
            own.inward.weight.copy_(theirs._uvqk.T)
            own.inward.bias.zero_()
            own.outward.load_state_dict(theirs._o.state_dict())
            own.bias.position.copy_(theirs._rel_attn_bias._pos_w[: found.length].flip(0))
            own.bias.time.copy_(theirs._rel_attn_bias._ts_w)
        return found

    def loss(self, packed):
        """The mean loss over the items that another one follows."""
        ids, lengths = self._padded(packed)
        vectors, states = self._states(ids, lengths - 1)
        return self._loss(
            lengths=lengths - 1,
            output_embeddings=states[:, :-1],
            supervision_ids=ids[:, 1:],
            supervision_embeddings=vectors[:, 1:],
            supervision_weights=(ids[:, 1:] != 0).float(),
            negatives_sampler=self._negatives,
        )[0]

    def user_vectors(self, packed):
        """The vectors of users [B, dim]."""
        ids, lengths = self._padded(packed)
        return self._states(ids, lengths)[1][torch.arange(len(ids)), lengths - 1]

    def item_vectors(self):
        """The vectors of items [items, dim]."""
        return self._negatives.normalize_embeddings(self._table.weight[1:])

    def _states(self, ids, lengths, times=None):
        """The vectors of items, and the states: [B, N, dim] each. times: of each id."""
        vectors = self.tower.get_item_embeddings(ids)
        times = torch.zeros_like(ids) if times is None else times
        return vectors, self.tower(lengths, ids, vectors, {"timestamps": times})

    def _padded(self, packed):
        """The ids from 1 [B, N], 0 where there is none, and the lengths."""
        ids = torch.zeros(len(packed.lengths), self._length + 1, dtype=torch.int64)
        rows = torch.arange(len(ids)).repeat_interleave(packed.lengths)
        ids[rows, packed.places()] = packed.items + 1
        return ids, packed.lengths


@torch.no_grad()
def apart(setting, lengths=(1, 7, 40, 150, 210), count=300):
    """The largest difference of our HSTU's states, which are directions, from those of the authors'
    tower with the same weights, over sequences of these lengths with times."""
    torch.manual_seed(0)
    model = AuthorsModel(count, "HSTU", setting._replace(length=max(lengths))).eval()
    items = [torch.randint(count, (length,)) for length in lengths]
    times = [torch.randint(10**8, (length + 1,)).sort().values for length in lengths]
    packed = Packed.of(
        items, [time[:-1] for time in times], asked=[int(time[-1]) for time in times]
    )
    ids, sizes = model._padded(packed)
    when = nn.utils.rnn.pad_sequence(times, batch_first=True)
    theirs = model._states(ids, sizes, when)[1]
    theirs = torch.cat([part[:length] for part, length in zip(theirs, lengths)])
    ours = F.normalize(model.to_ours().eval()(model._table(packed.items + 1), packed), dim=1)
    return float((ours - theirs).abs().max())


def _of(name):
    return importlib.import_module(f"generative_recommenders.research.modeling.sequential.{name}")


def _of_rails():
    name = "generative_recommenders.research.rails.similarities.dot_product_similarity_fn"
    return importlib.import_module(name)
