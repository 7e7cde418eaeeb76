"""Training on: a converted graph, or a module of one's own, with exact resumption.

    converted = open_converted(migrate.open_checkpoint("model.ckpt-40000"))
    reading = reading_of(converted.inputs, named={}, feeds={}, label="click", day=None)
    data = open_columns(["log"], reading, batch_size=1024)
    train(converted.task, data, "trained", resume=True)

1. A `Task` is a module that gives (loss, scores), and its optimizer. `open_converted` makes it of a
   checkpoint; `distribute` shares it out among the processes of `joined`.
2. The data give this process's `Batch`es and their own position; `open_columns` reads files.
3. `train` takes the steps, measures, reports, and writes checkpoints while it goes on; `Scores`
   keeps each row's score from before its step.
4. `renew_evicted` has tables by raw ids give a row to a new id without the old one's values.

`semisync train` is these together. Importing this package imports no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
