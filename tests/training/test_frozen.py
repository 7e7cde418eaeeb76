"""Tables that are not trained take half the memory or less, and are looked up as before."""

import pytest
import torch
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection
from torchrec.modules.embedding_configs import EmbeddingConfig, PoolingType

from migrate.runtime import bags, look_up, look_up_bags
from migrate.training.frozen import shrink
from semisync.common.errors import BadInput

ROWS, DIM = 1000, 16
IDS = torch.tensor([3, 3, 999, 0, 5, 6, 7])
BAGS = torch.tensor([0, 0, 0, 1, 3, 3, 3])
WEIGHTS = torch.tensor([1.0, 0.5, 2.0, 1.0, 0.25, 1.0, 3.0])


class Model(torch.nn.Module):
    def __init__(self, pooling=PoolingType.SUM, weighted=False):
        super().__init__()
        torch.manual_seed(0)
        self.rows = EmbeddingCollection(
            tables=[
                EmbeddingConfig(
                    num_embeddings=ROWS,
                    embedding_dim=DIM,
                    name=name,
                    feature_names=[name + "_ids"],
                )
                for name in ("static", "trained")
            ]
        )
        bags = [
            EmbeddingBagConfig(
                num_embeddings=ROWS,
                embedding_dim=dim,
                name=name,
                feature_names=[feature],
                pooling=pooling,
            )
            for name, feature, dim in (("bags", "bag", DIM), ("first", "one", 1))
        ]
        self.bags = EmbeddingBagCollection(tables=bags, is_weighted=weighted)

    def forward(self, weighted=False):
        found = look_up(self.rows, {"static_ids": IDS.reshape(7, 1), "trained_ids": IDS})
        bag = bags(IDS, BAGS, WEIGHTS if weighted else None)
        return {**found, **look_up_bags(self.bags, {"bag": bag, "one": bag})}


TRAINED = {"rows.embeddings.trained.weight"}


@pytest.mark.parametrize(
    ("precision", "share", "error"), [("fp16", 0.5, 1e-3), ("int8", 0.5, 1e-2)]
)
@pytest.mark.parametrize("pooling", [PoolingType.SUM, PoolingType.MEAN])
def test_look_ups_stay_within_the_rounding(precision, share, error, pooling):
    model = Model(pooling)
    before = model()
    shrunk = shrink(model, TRAINED, precision)
    assert shrunk.tables == ["static", "bags", "first"]
    assert shrunk.bytes_before == 4 * ROWS * (2 * DIM + 1)
    assert shrunk.bytes_after <= share * shrunk.bytes_before
    assert 0 < shrunk.largest < error
    for name, found in model().items():
        assert found.shape == before[name].shape and found.dtype == torch.float32
        assert (found - before[name]).abs().max() <= 4 * shrunk.largest
    assert torch.equal(model()["trained_ids"], before["trained_ids"])


def test_bags_with_weights_are_pooled_with_them():
    model = Model(weighted=True)
    before = model(weighted=True)
    shrunk = shrink(model, TRAINED, "int8")
    for name, found in model(weighted=True).items():
        assert (found - before[name]).abs().max() <= 8 * shrunk.largest


def test_int8_takes_dim_and_four_bytes_a_row():
    model = Model()
    shrink(model, TRAINED, "int8")
    assert model.rows.embeddings["static"].rows.nbytes == ROWS * (DIM + 4)
    assert model.bags.embedding_bags["first"].rows.nbytes == ROWS * 2


def test_values_that_16_bits_cannot_hold_are_refused():
    model = Model()
    model.rows.embeddings["static"].weight.data[5, 5] = 1e6
    with pytest.raises(BadInput, match="'static' has values that 16 bits cannot hold"):
        shrink(model, TRAINED, "fp16")
