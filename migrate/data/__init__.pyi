# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .batch import Batch as Batch
from .batch import to_batch as to_batch
from .data_set import DataSet as DataSet
from .inference import infer as infer
from .inputs import InputBatch as InputBatch
from .inputs import inputs_of as inputs_of
from .opening import open_data as open_data
from .position import Position as Position
from .position import Share as Share
from .rows import Rows as Rows
from .schema import Column as Column
from .schema import TextFormat as TextFormat
from .shuffling import Shuffle as Shuffle
