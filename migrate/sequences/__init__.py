"""Generative recommendation: towers over the sequence of a user's events, in plain torch.

    items = torch.nn.Embedding(12_101, 64)
    tower = Hstu(dim=64, heads=2, layers=2, length=50, dropout=0.2)
    model = RetrievalModel(items, tower, Retrieval(12_101, "uniform", count=1024))
    packed = Packed.of([[3, 8, 1], [4, 4, 9, 7, 2]])
    model.loss(packed).backward()
    places = ranks(model.user_vectors(packed), model.item_vectors(), torch.tensor([5, 0]))

1. `Packed` is a batch of sequences of any lengths without padding. Inside, sequences of similar
   lengths are computed together.
2. `Hstu` and `SasRec` are towers: each item's state from the items up to its own. The rest of
   a batch has no influence on a sequence.
3. `Retrieval` predicts the next item, `Ranking` several labels of an item.
4. `read_histories` reads users' events from files, `split` holds out events to predict.
5. `ranks` gives the next item's rank among all items, `measured` HR@K, NDCG@K and MRR of ranks,
   `judged` AUC, GAUC and log loss of labels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
