"""A Go2 with a load on its back trots in simulation; com_identification records it beside that."""

import numpy as np
import pytest
from service_caller import ServiceCaller
from std_srvs.srv import SetBool

from com_model import RobotModel, Sesc, find_robot, load_robot
from com_msgs import action
from com_msgs.msg import GaitPhase, WalkRecording

LOAD, AT = 2.0, (-0.06, 0.03, 0.09)  # kg, m on the trunk
LOCKSTEP = [
    "lockstep:=true",
    "use_sim_time:=true",
    "input_timeout:=60.0",
    "real_time_factor:=0.0",
]
QUIET = ["sesc:=false", "rviz:=false", "state_publisher:=false"]
SECONDS = 32  # of the recording; a file has 10


# test/integration/test_record_walk.py has the same without launch and physics.
@pytest.mark.exhaustive
def test_a_trot_is_recorded_analysed_and_identified(launch, ear, tmp_path):
    phases = ear.listen(GaitPhase, "gait/stance")
    said = ear.listen(WalkRecording, "identification/walk_recording")
    go2 = find_robot("go2")
    robot = [f"urdf:={go2.urdf}", f"config:={go2.config}"]
    load = [f"payload_{axis}:={value}" for axis, value in zip("xyz", AT, strict=True)]
    load += [f"payload_mass:={LOAD}", "payload_time:=0.0"]
    nodes = "lockstep_nodes:=['trot_gait','com_identification']"
    rates = ["publish_rate_hz:=200.0", "physics_step:=0.0005", "noise:=trot"]
    launch(
        "com_bringup",
        "trot.launch.xml",
        *robot,
        *QUIET,
        *LOCKSTEP,
        *load,
        *rates,
        nodes,
    )
    words = [
        *robot,
        *QUIET,
        "simulation:=false",
        "use_sim_time:=true",
        f"storage:={tmp_path}",
    ]
    launch("com_bringup", "identification.launch.xml", *words, "input_timeout:=60.0")
    caller = ServiceCaller(ear.node, ear.until, "com_identification")

    def call(kind, name, **fields):
        answer = caller.begin(kind, name, **fields)
        ear.until(answer.done, f"answer of {name}")
        return answer.result()

    def trots():
        return [p for p in phases if p.state == GaitPhase.TROTTING]

    ear.until(trots, "trot")
    assert call(SetBool, "record_walk", data=True).success
    ear.until(lambda: said and said[-1].motions, "what to record next, while it trots")
    assert said[-1].recording
    assert said[-1].problem == ""
    for seconds in range(2, SECONDS + 2, 2):  # each may take a while on a busy machine
        ear.until(
            lambda least=seconds: said[-1].seconds >= least, f"{seconds} s are recorded"
        )
    ear.until(lambda: said[-1].analysed > 25.0, "the analysis of three files")
    ended = call(SetBool, "record_walk", data=False)
    assert ended.success, ended.message
    model, config = load_robot("go2")
    answer = call(action.IdentifyWalk, "identify_walk", mass=model.mass + LOAD)
    assert answer.success, answer.message
    found = RobotModel.from_file(tmp_path / "walk_result" / "corrected.urdf")
    q = config.nominal_posture(model)
    com = Sesc(model).com(q)
    true = (model.mass * com + LOAD * np.array(AT)) / (model.mass + LOAD)
    assert np.linalg.norm(com - true) > 0.01
    assert np.linalg.norm(Sesc(found).com(q) - true) < 0.25 * np.linalg.norm(com - true)
