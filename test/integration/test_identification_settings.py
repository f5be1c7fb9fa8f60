"""One source of settings: a bag gives the same links by identify, by the node and by Python."""

import shutil
from pathlib import Path

import numpy as np
import yaml
from identification_bags import BagWriter, Scene, Tour, samples

from com_identification import IdentificationSettings, identify
from com_identification.commands.identify import main
from com_identification.nodes.com_identification import ComIdentification
from com_identification.store.store import PostureStore
from com_msgs import srv
from com_ros.conversions import point_to_numpy, vector3_to_numpy

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTIONS = ROOT / "src/robot_descriptions"
SHIPPED = ROOT / "launch/config/com_identification.yaml"


def shipped_parameters():
    """{"prior": {"com_std": ...}, ...} of the launch file's parameters."""
    return yaml.safe_load(SHIPPED.read_text())["/**"]["ros__parameters"]


def test_shipped_parameters_are_the_defaults():
    assert (
        IdentificationSettings.from_dict(shipped_parameters())
        == IdentificationSettings()
    )


def test_a_bag_gives_the_same_links_whoever_identifies(world, tmp_path):
    urdf, config = (
        DESCRIPTIONS / "urdf/biped3.urdf",
        DESCRIPTIONS / "config/biped3.yaml",
    )
    scene, bag, out = Scene(urdf, config), tmp_path / "bag", tmp_path / "out"
    with BagWriter(bag, scene, "mcap") as writer:
        for block in samples(
            scene, scene.postures(12), Tour(rate=100.0, still=2.0, moving=0.5)
        ):
            writer.write(block)
    words = [bag, "--robot", urdf, "--config", config, "--output", out]
    assert main([str(word) for word in words]) == 0
    by_command = yaml.safe_load((out / "result.yaml").read_text())

    store = tmp_path / "store"
    store.mkdir()
    shutil.copy(out / "postures.db", store)
    world.start(
        ComIdentification,
        robot_description=urdf.read_text(),
        robot_config=str(config),
        storage_directory=str(store),
        fit__use_imu=True,  # as the launch file; there is no IMU in the bag
        **{
            f"{part}__{name}": value
            for part, values in shipped_parameters().items()
            for name, value in values.items()
        },
    )
    client = world.node.create_client(
        srv.IdentifyLinks, "com_identification/identify_links"
    )
    world.spin_until(client.service_is_ready, "the service")
    future = client.call_async(srv.IdentifyLinks.Request())
    world.spin_until(future.done, "an answer", timeout=120.0)
    assert future.result().success, future.result().message
    by_node = future.result().result.bodies

    with PostureStore(out / "postures.db", scene.model, scene.feet) as written:
        by_python = identify(scene.model, scene.feet, list(written.postures.values()))

    assert [body.name for body in by_node] == [
        body["link"] for body in by_command["bodies"]
    ]
    for b, body in enumerate(by_command["bodies"]):
        for name, to_numpy in (("com", point_to_numpy), ("com_std", vector3_to_numpy)):
            found = np.array(body[name], dtype=float)
            np.testing.assert_allclose(
                to_numpy(getattr(by_node[b], name)), found, atol=1e-9
            )
            np.testing.assert_allclose(getattr(by_python, name)[b], found, atol=1e-9)
