"""Training of a model of sequences: its settings, tables, batches, and metrics.

settings          the YAML of `semisync sequence train`
tables            items by raw ids (migrate.id_tables), or by TorchRec's EmbeddingCollection
building          settings and catalog to the model, with its optimizers
dense_and_tables  how TorchRec's tables are dealt out and trained
feed              histories to the batches of `migrate.training.train`
measuring         ranks of validation and test, over all processes
run               all of it: a training, and one that was written, opened again
"""
