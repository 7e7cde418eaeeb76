"""The subcommands of `semisync`, a module each, named after it; they join the packages.

A module has two functions, see `semisync.cli`. It is imported when its subcommand is used.
"""
