"""Is everything there that the manifest lists, and nothing else? Checked before values are read."""

from __future__ import annotations

import hashlib
import json

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.manifest import dynamicemb, model_json
from migrate.manifest.manifest import FILE, Manifest, Written, is_intact
from migrate.manifest.transforms import named
from migrate.targets import INDEXES
from migrate.targets.reading import Reader
from migrate.verification.findings import Verification
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.storage.files import read_whole
from semisync.storage.folders import joined
from semisync.storage.within import data_file


def check_beside(directory: str, manifest: Manifest, result: Verification) -> None:
    """Checks the files beside the data."""
    _check_settings(directory, manifest, result)
    if not is_intact(directory):
        result.differs("manifest.json is not as it was written: its SHA-256 differs")
    try:
        config = model_json.read_model(directory)
    except BadInput as error:
        result.differs(str(error))
        return
    if model_json.contradicts(config, manifest):
        result.differs(f"{model_json.FILE} has a table that is not so in the manifest")
    elif json.dumps(config) != json.dumps(model_json.model_config(manifest)):
        result.unchecked.append(f"{model_json.FILE}, which was edited since it was written")


def check_index(directory: str, manifest: Manifest, result: Verification) -> None:
    """Checks the target's index, which has the places of its values."""
    name = INDEXES[manifest.target]
    if manifest.index_sha256 is None:
        result.unchecked.append(f"{name}, of which a manifest of an earlier version has no SHA-256")
    elif hashlib.sha256(read_whole(joined(directory, name))).hexdigest() != manifest.index_sha256:
        result.differs(f"{name} is not as it was written: its SHA-256 differs")


def _check_settings(directory: str, manifest: Manifest, result: Verification) -> None:
    """Checks the optimizers' settings for dynamicemb, which may be edited."""
    for name, settings in dynamicemb.settings_files(manifest):
        try:
            found = json_text.loads(read_whole(data_file(directory, name, FILE)))
        except (BadInput, ValueError) as error:
            result.differs(f"{name} cannot be read ({error})")
            continue
        if found != settings:
            result.unchecked.append(f"{name}, which was edited since it was written")


def check_accounts(checkpoint: Checkpoint, manifest: Manifest, result: Verification) -> None:
    """Checks that every tensor of the checkpoint was written, or dropped with a reason."""
    written = manifest.sources()
    for name in checkpoint:
        if name not in written and name not in manifest.dropped:
            result.differs(f"{name!r} was neither written nor dropped with a reason")
    result.notes += [f"not carried: {sentence}" for sentence in manifest.not_carried()]


def check_kind(
    checkpoint: Checkpoint, written: Written, reader: Reader, result: Verification
) -> bool:
    """Whether source and target have the tensor as the manifest says."""
    if not check_stored(written, reader, result):
        return False
    info = checkpoint.get(written.source)
    if info is None:
        result.differs(f"{written.fqn!r} is made from {written.source!r}, which is not there")
        return False
    shape = list(named(written.transform).shape(info.shape))
    if shape != written.shape:
        result.differs(f"{written.fqn!r} is {written.shape}, but {written.source!r} {shape}")
        return False
    return True


def check_stored(written: Written, reader: Reader, result: Verification) -> bool:
    """Whether the target has the tensor as the manifest says."""
    stored = reader.tensors.get(written.fqn)
    if stored is None:
        result.differs(f"{written.fqn!r} is in the manifest, but not in the target")
        return False
    if (list(stored.shape), stored.dtype) != (written.shape, written.dtype):
        result.differs(
            f"{written.fqn!r} is {written.dtype} {written.shape} in the manifest, "
            f"{stored.dtype} {list(stored.shape)} in the target"
        )
        return False
    return True
