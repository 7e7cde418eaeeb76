"""Files that another process may read at any moment."""

import json
import os


def write_json(path, value):
    """Writes `value` beside its place and moves it there, so that a reader sees it whole."""
    with open(path + ".part", "w") as file:
        json.dump(value, file)
    os.replace(path + ".part", path)
