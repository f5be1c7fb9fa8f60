"""posture_protocol.launch.xml for TALOS: asked over DDS as a user asks."""

import pytest

from com_msgs.srv import TipAngles


def test_talos_tells_its_tip_angles(launch, ear):
    run = launch("com_bringup", "posture_protocol.launch.xml", "robot:=talos")
    client = ear.node.create_client(TipAngles, "posture_protocol/tip_angles")
    ear.until(client.service_is_ready, "the service")
    answer = client.call_async(TipAngles.Request(tests=["ankle Back, arms_down"]))
    ear.until(answer.done, "the answer")
    result = answer.result()
    assert result.success, result.message
    assert list(result.names) == ["ankle Back, arms_down"]
    assert result.angles[0] == pytest.approx(
        0.12, abs=0.01
    )  # 98 mm behind it, 0.83 m above
    assert list(result.falls) == [True]
    assert run.stop() == 0, run.output
