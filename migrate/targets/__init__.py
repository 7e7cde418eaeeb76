"""Formats of the output, one module each (`dcp`, `safetensors`), with the same two functions:

    lay_out(items, cuts, room)         -> migrate.stream.regions.Layout: where everything will stand
    finish(directory, items, layout)   writes the index, which makes the directory a checkpoint

The values are written between the two, region by region (`migrate.stream.writing`). `reading` reads
either format back, `work_directory` makes the directory appear whole.
"""

INDEXES = {"dcp": ".metadata", "safetensors": "model.safetensors.index.json"}  # beside the values
TARGETS = tuple(INDEXES)
