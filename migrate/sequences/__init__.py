"""Generative recommendation: towers over the sequence of what a user did, in plain torch.

    items = torch.nn.Embedding(12_101, 64)
    tower = Hstu(dim=64, heads=2, layers=2, length=50, dropout=0.2)
    model = RetrievalModel(items, tower, Retrieval(12_101, "uniform", count=1024))
    packed = Packed.of([[3, 8, 1], [4, 4, 9, 7, 2]])
    model.loss(packed).backward()
    places = ranks(model.user_vectors(packed), model.item_vectors(), torch.tensor([5, 0]))

1. `Packed` is a batch of sequences of any lengths without padding. Inside, sequences of about one
   length stand side by side.
2. `Hstu` and `SasRec` are towers: each item's state from the items up to its own. What else is in a
   batch has no influence on a sequence.
3. `Retrieval` asks which item comes next, `Ranking` what is done with an item, for several labels.
4. `read_histories` reads what users did from files, `split` holds out events to ask for.
5. `ranks` says where the next item stands among all of them, `measured` HR@K, NDCG@K and MRR;
   `judged` AUC, GAUC and log loss of labels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
