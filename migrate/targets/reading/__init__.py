"""Reading a converted directory back, row by row, without what the writers know.

A DCP is read by its own metadata and `torch.load`; a safetensors file by the safetensors package; a
tensor that is a file of its own as the manifest says.
"""

from migrate.targets.reading.dcp import DcpReader
from migrate.targets.reading.reader import FileReader, Reader, Stored
from migrate.targets.reading.safetensors import SafetensorsReader

__all__ = ["FileReader", "Reader", "Stored", "open_target"]


def open_target(directory: str, target: str) -> Reader:
    """The reader of what `semisync convert --target` wrote; raises BadInput if it is damaged."""
    return DcpReader(directory) if target == "dcp" else SafetensorsReader(directory)
