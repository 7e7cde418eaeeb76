"""The board: what the chief, and nobody else, writes for everybody to read.

    clock      int64 []        global batches applied; a batch's token is a reading of it
    epoch      int64 []        the chief's first ticket, by which it is known
    pace       int64 []        how long a global step takes now, in us; 0 while that is not known
    beats      int64 []        grows about once a second while the chief lives; ENDED at its end
    settings   string []       see `semisync.settings`
    fates      int64 [RING,3]  ticket, fate, staleness of the newest tickets, at ticket % RING
    gauges     float32 [n]     see GAUGES

The variables lie on the global step's PS, outside every checkpoint and every collection: the chief
initialises them when it begins, and sets the clock to the global step. Several optimizers of one
graph may share a global step; each has a board, so that its staleness counts its own steps only.
"""

from semisync.common.compat import raw_ops, tf
from semisync.fate import Fate

RING = 4096
ENDED = -1
GAUGES = ("admitted", "decayed", "stale", "lost", "in_flight", "pending", "waiting_seconds")


class Board:
    """Graph ops on the board. Build it once a graph, on the global step's device.

    Args:
      name: shared by all processes of the job.
      device: of the global step.
    """

    def __init__(self, name, device):
        self.device = device
        with tf.device(device):
            self.clock = _variable(name + "/clock", 0, tf.int64)
            self.epoch = _variable(name + "/epoch", 0, tf.int64)
            self.pace = _variable(name + "/pace", 0, tf.int64)
            self.beats = _variable(name + "/beats", 0, tf.int64)
            self.settings = _variable(name + "/settings", "", tf.string)
            self.fates = _variable(name + "/fates", [[0, 0, -1]] * RING, tf.int64)
            self.gauges = _variable(name + "/gauges", [0.0] * len(GAUGES), tf.float32)
            # Read once and for all: the graph may be finalized when they are needed.
            self.read_epoch = self.epoch.read_value()
            self.read_beats = self.beats.read_value()
            self.read_settings = self.settings.read_value()
            self._build_chiefs_ops()

    def _build_chiefs_ops(self):
        self.new_clock = tf.placeholder(tf.int64, [], name="new_clock")
        self.new_epoch = tf.placeholder(tf.int64, [], name="new_epoch")
        self.new_pace = tf.placeholder(tf.int64, [], name="new_pace")
        self.new_beats = tf.placeholder(tf.int64, [], name="new_beats")
        self.new_settings = tf.placeholder(tf.string, [], name="new_settings")
        self.new_fates = tf.placeholder(tf.int64, [None, 3], name="new_fates")
        self.new_gauges = tf.placeholder(tf.float32, [len(GAUGES)], name="new_gauges")
        self.claim = self.epoch.assign(self.new_epoch, read_value=False)
        self.open = tf.group(
            self.clock.assign(self.new_clock, read_value=False),
            self.pace.initializer,
            self.beats.initializer,
            self.settings.assign(self.new_settings, read_value=False),
            self.fates.initializer,
            self.gauges.initializer,
        )
        self.post = tf.group(
            self.pace.assign(self.new_pace, read_value=False),
            self.beats.assign(self.new_beats, read_value=False),
            self.gauges.assign(self.new_gauges, read_value=False),
        )

    def record_fates(self):
        """Returns the op that writes `new_fates`."""
        with tf.device(self.device):
            return raw_ops.ResourceScatterUpdate(
                resource=self.fates.handle,
                indices=tf.math.floormod(self.new_fates[:, 0], RING),
                updates=self.new_fates,
            )

    def fate_of(self, ticket):
        """The fate and staleness of `ticket`, int64 [2]; (PENDING, -1) while they are not known."""
        with tf.device(self.device):
            row = tf.gather(self.fates.read_value(), tf.math.floormod(ticket, RING))
            known = tf.equal(row[0], ticket)
            pending = tf.constant([Fate.PENDING, -1], tf.int64)
            return tf.where(tf.stack([known, known]), row[1:], pending)

    def summaries(self):
        """Adds what TensorBoard shows to the graph's summaries."""
        with tf.device(self.device):
            fates = self.fates.read_value()
            decided = tf.greater(fates[:, 1], int(Fate.PENDING)) & tf.less(
                fates[:, 1], int(Fate.LOST)
            )
            tf.summary.histogram("staleness", tf.boolean_mask(fates[:, 2], decided))
            gauges = self.gauges.read_value()
            for number, name in enumerate(GAUGES):
                tf.summary.scalar(name, gauges[number])


def _variable(name, value, dtype):
    # Not get_variable, no scope, no collection: the same name in every process, and no saver's.
    with tf.name_scope(None):
        return tf.Variable(
            tf.constant(value, dtype), trainable=False, use_resource=True, name=name, collections=[]
        )
