# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .checkpoints import Checkpoints as Checkpoints
from .converted_task import open_converted as open_converted
from .distributed.devices import device_of as device_of
from .distributed.processes import joined as joined
from .distributed.sharding import distribute as distribute
from .frozen import shrink as shrink
from .raw_ids import renew_evicted as renew_evicted
from .reading import open_columns as open_columns
from .reading import reading_of as reading_of
from .scores import Scores as Scores
from .task import Batch as Batch
from .task import Task as Task
from .trainer import Settings as Settings
from .trainer import train as train
