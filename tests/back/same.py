"""When a checkpoint is another one."""

import migrate
from tests.support.bundles import same


def assert_same(prefix, other):
    """Names, types, shapes, slices and values are the same, bit for bit, and every crc32c holds."""
    with migrate.open_checkpoint(prefix) as one, migrate.open_checkpoint(other) as two:
        assert dict(one) == dict(two)
        assert one.stored.as_stored.keys() == two.stored.as_stored.keys()
        for name in one:
            two.verify(name)
            assert same(two.read(name), one.read(name)), name
