"""Semi-synchronous training for TensorFlow parameter servers.

Nothing heavy is imported before it is used: `import semisync` needs no TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
