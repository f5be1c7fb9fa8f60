"""com_identification adds its results to the record of the robot, and compares with it."""

from pathlib import Path

import pytest
from identification_bench import POSTURE, Scenario

from com_identification.health.records import HealthDatabase
from com_msgs import srv


def test_results_come_into_the_record_which_the_robot_is_compared_with(
    world, make_standing_robot, tmp_path
):
    path = tmp_path / "robots.db"
    scenario = Scenario(
        world,
        make_standing_robot("biped3"),
        tmp_path,
        health_record=str(path),
        robot_serial="7",
    )
    scenario.fill(8)
    assert scenario.call(srv.IdentifyLinks, "identify_links").success
    world.spin_until(lambda: HealthDatabase(path, create=True).records(), "a record")
    (record,) = HealthDatabase(path).records()
    assert (record.robot, record.serial, record.source) == ("biped3", "7", "node")
    (result,) = [r for r in scenario.results if r.bodies]
    assert result.total_mass == pytest.approx(record.total_mass[0])
    mass, std = record.mass_on_feet
    assert abs(mass - scenario.robot.model.mass) < 5.0 * std < 0.5

    def text():
        return str(scenario.node.diagnose().values["record"])

    scenario.node.use_model(scenario.robot.model)  # as after a start
    scenario.play_until(
        lambda: scenario.node._health._check is not None, "it has its record"
    )
    for _ in range(3):
        scenario.play(*POSTURE)
        assert text() == ""
    for _ in range(10):
        scenario.play(*POSTURE, offset=[0.0, 0.0, 0.0, 0.0, 4.0, 0.0])
        if text():
            break
    assert text().startswith(f"unlike its record of {record.taken}")


def test_a_damaged_record_does_not_stop_the_node_and_the_result_waits(
    world, make_standing_robot, tmp_path
):
    path, damaged = tmp_path / "robots.db", b"no database at all" * 100
    path.write_bytes(damaged)
    scenario = Scenario(
        world, make_standing_robot("biped3"), tmp_path, health_record=str(path)
    )
    scenario.fill(8)
    assert scenario.call(srv.IdentifyLinks, "identify_links").success
    waiting = Path(f"{path}.pending")
    world.spin_until(
        lambda: list(waiting.glob("*.json")), "the identification, beside the record"
    )
    assert path.read_bytes() == damaged
    path.unlink()
    (record,) = HealthDatabase(path, create=True).records()
    assert record.source == "node"
