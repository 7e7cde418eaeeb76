"""Reading a converted directory back, row by row, without the writers' knowledge.

A DCP is read by its own metadata and `torch.load`, which unpickle data alone; a safetensors file by
the safetensors package; a tensor that is a file of its own as the manifest says.
"""

from migrate.targets import INDEXES
from migrate.targets.reading.dcp import DcpReader
from migrate.targets.reading.reader import FileReader, Reader, Stored
from migrate.targets.reading.safetensors import SafetensorsReader
from semisync.common.errors import BadInput

__all__ = ["FileReader", "Reader", "Stored", "open_target"]


def open_target(directory: str, target: str) -> Reader:
    """The reader of the output of `semisync convert --target`; raises BadInput if it is damaged."""
    if target not in INDEXES:
        raise BadInput(
            f"the manifest of {directory} has the target {target!r}, expected one of "
            f"{', '.join(INDEXES)}"
        )
    return DcpReader(directory) if target == "dcp" else SafetensorsReader(directory)
