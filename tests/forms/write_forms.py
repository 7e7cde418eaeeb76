"""Trains the jobs of forms, in TensorFlow 1.15 or 2.x: python write_forms.py FOLDER NAMES.

FOLDER/NAME/ has what `job.keep` writes.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2]))

from semisync.common.compat import tf
from tests.forms.every import FORMS
from tests.forms.job import keep

if __name__ == "__main__":
    tf.disable_v2_behavior()
    for name in sys.argv[2:]:
        os.makedirs(os.path.join(sys.argv[1], name))
        keep(FORMS[name], os.path.join(sys.argv[1], name))
