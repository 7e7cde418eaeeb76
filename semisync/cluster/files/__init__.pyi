# What __init__.py imports when it is first used; type checkers and the API reference read it too.
from .asking import download as download
from .asking import next_configuration as next_configuration
from .configurations import Configuration as Configuration
from .configurations import Configurations as Configurations
from .configurations import Conflict as Conflict
from .manifest import Manifest as Manifest
from .manifest import make_manifest as make_manifest
from .node import Node as Node
from .signing import read_key as read_key
from .tls import Tls as Tls
