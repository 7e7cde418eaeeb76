"""What each op is tested with, by the kinds of `migrate.model.ops.registry`."""
