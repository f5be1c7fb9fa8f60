"""Listens to a run: what is published about the CoM, and the simulator's truth.

Subscribes:
    com (com_msgs/CenterOfMass): every message is recorded, with the time of its receipt.
    ground_truth/com (com_msgs/CenterOfMass): matched with `com` by stamp.
    sesc (com_msgs/SescChain), joint_states (sensor_msgs/JointState): matched with `com` by stamp
        into the snapshots that pictures are drawn from.
"""

from collections import OrderedDict
from typing import TypeVar

from sensor_msgs.msg import JointState

from com_demos.live import Rows
from com_demos.nodes.listener import ListeningNode
from com_demos.sway_recording import Recording, Sample
from com_estimation.nodes.com_conversions import center_of_mass_to_numpy, sesc_chain_to_numpy
from com_model.model import RobotModel
from com_msgs.msg import CenterOfMass, SescChain
from com_ros.conversions import NS_PER_S, stamp_to_ns
from com_ros.joint_input import JointInput
from com_simulation.drawing.scene import Snapshot

SHOWN = 500  # newest samples that a view shows figures of
STORED = 1000  # recent messages that may still be asked for by their stamp
T = TypeVar("T")


class SwayMonitor(ListeningNode):
    """Records a run of one robot.

    Attributes:
        recording: every known CoM, with its truth.
        snapshots: the instants for which all of CoM, chain and joint positions arrived.
        unknown: number of messages without a known CoM.
        reason: what the last of those gave as the reason.
    """

    def __init__(self, model: RobotModel) -> None:
        super().__init__("sway_monitor", "com")
        self.start_over()
        self._names = model.joint_names
        self._coms: OrderedDict[int, CenterOfMass] = OrderedDict()
        self._joints: OrderedDict[int, JointState] = OrderedDict()
        self._chains: OrderedDict[int, SescChain] = OrderedDict()
        self._listen(CenterOfMass, "com", self._on_com)
        self._listen(CenterOfMass, "ground_truth/com", self._on_truth)
        self._listen(JointState, "joint_states", self._on_joints)
        self._listen(SescChain, "sesc", self._on_sesc)

    def start_over(self) -> None:
        """Forget what has been recorded."""
        self.recording = Recording()
        self.snapshots: list[Snapshot] = []
        self.unknown = 0
        self.reason = ""

    @property
    def elapsed(self) -> float:
        """Time between the first and the last CoM, s."""
        samples = self.recording.samples
        return (samples[-1].stamp_ns - samples[0].stamp_ns) / NS_PER_S if samples else 0.0

    def rows(self) -> Rows:
        """Return what a view shows."""
        return self.recording.series(last=SHOWN).rows()

    def problem(self, seconds: float) -> str:
        """Return why no CoM came for a time."""
        return f"the CoM is not known: {self.reason}" if self.unknown else super().problem(seconds)

    def _on_com(self, msg: CenterOfMass, info: dict) -> None:
        if msg.status == CenterOfMass.STATUS_UNKNOWN:
            self.unknown += 1
            self.reason = msg.reason
            return
        stamp_ns = stamp_to_ns(msg.header.stamp)
        com = (msg.position.x, msg.position.y, msg.position.z)
        received_ns = info["received_timestamp"]
        self.recording.samples.append(Sample(stamp_ns, received_ns, com, msg.support_margin))
        _store(self._coms, stamp_ns, msg)

    def _on_truth(self, msg: CenterOfMass, _info: dict) -> None:
        com = (msg.position.x, msg.position.y, msg.position.z)
        self.recording.truths[stamp_to_ns(msg.header.stamp)] = com

    def _on_joints(self, msg: JointState, _info: dict) -> None:
        _store(self._joints, stamp_to_ns(msg.header.stamp), msg)

    def _on_sesc(self, msg: SescChain, _info: dict) -> None:
        """Store the chain; its counterparts have surely arrived when the next one does."""
        for stamp_ns in list(self._chains):
            self._try_snapshot(stamp_ns, self._chains.pop(stamp_ns))
        _store(self._chains, stamp_to_ns(msg.header.stamp), msg)

    def _try_snapshot(self, stamp_ns: int, chain: SescChain) -> None:
        com, joints = self._coms.get(stamp_ns), self._joints.get(stamp_ns)
        if com is None or joints is None:
            return
        sample = JointInput(self._names, timeout_s=1.0).update(joints, stamp_ns)
        if sample is None or sample.error:
            return
        values = center_of_mass_to_numpy(com)
        self.snapshots.append(
            Snapshot(
                q=sample.position,
                com=values.position,
                projection=values.projection,
                gravity=values.gravity,
                chain=sesc_chain_to_numpy(chain)[3],
                contacts=values.contacts,
                margin=values.margin,
                on_feet=values.ground == CenterOfMass.GROUND_FEET,
            )
        )


def _store(store: OrderedDict[int, T], stamp_ns: int, msg: T) -> None:
    store[stamp_ns] = msg
    if len(store) > STORED:
        store.popitem(last=False)
