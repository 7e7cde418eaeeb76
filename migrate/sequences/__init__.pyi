# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .histories import Columns as Columns
from .histories import Histories as Histories
from .histories import read_histories as read_histories
from .hstu import Hstu as Hstu
from .judged import Judged as Judged
from .judged import judged as judged
from .model import RankingModel as RankingModel
from .model import RetrievalModel as RetrievalModel
from .packed import Packed as Packed
from .ranking import Ranking as Ranking
from .ranks import measured as measured
from .ranks import ranks as ranks
from .retrieval import Retrieval as Retrieval
from .sasrec import SasRec as SasRec
from .splits import Split as Split
from .splits import SplitAt as SplitAt
from .splits import split as split
