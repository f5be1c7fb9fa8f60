"""Bounds of centres of mass by meshes: used where the URDF's mass fits into them, else not."""

from itertools import product

import numpy as np
import pytest

from com_identification.regression.priors import BOUND_AXES, body_priors, urdf_priors
from com_identification.settings import IdentificationSettings
from com_model import RobotModel
from com_model.shapes.urdf_shapes import ShapeReader

LOW, HIGH = np.array([-0.05, -0.1, -0.02]), np.array([0.15, 0.1, 0.28])
# of the URDF; HALF: solid cube
COM, HALF, MARGIN = np.array([0.01, 0.0, 0.02]), 0.03, 0.02
URDF = """<robot name="r"><link name="a">
<inertial><origin xyz="0.01 0 0.02"/><mass value="2"/>
<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>
{shapes}</link></robot>"""
VISUAL = (
    '<visual><origin xyz="{xyz}"/>'
    '<geometry><mesh filename="{file}" {scale}/></geometry></visual>'
)


def write_box(path, low, high):
    """A mesh whose hull is a box."""
    corners = np.array(list(product(*zip(low, high, strict=True))))
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    path.write_text(
        "\n".join([*lines, *(f"f {i} {i + 1} {i + 2}" for i in range(1, 7))])
    )


@pytest.fixture
def bounds(tmp_path):
    folder = tmp_path / "robot" / "meshes"
    folder.mkdir(parents=True)
    write_box(folder / "box.obj", LOW, HIGH)
    write_box(tmp_path / "outside.obj", LOW, HIGH)

    def of(file="box.obj", scale="", xyz="0 0 0", half=HALF, extra=""):
        """The lowest and highest place of the centre of mass."""
        shapes = VISUAL.format(file=f"../meshes/{file}", scale=scale, xyz=xyz) + extra
        urdf = folder.parent / "urdf" / "r.urdf"
        urdf.parent.mkdir(exist_ok=True)
        urdf.write_text(URDF.format(i=2.0 * 2.0 * half**2 / 3.0, shapes=shapes))
        found = body_priors(RobotModel.from_file(urdf), IdentificationSettings())
        return found.com_low[0, :3], found.com_high[0, :3]

    return of


def test_a_turned_shape_bounds_by_its_hull_not_its_box(tmp_path):
    shape = '<collision><origin rpy="0 0 0.7853981633974483"/><geometry>{}</geometry></collision>'
    turned = URDF.format(i=0.01, shapes=shape.format('<box size="0.4 0.2 0.6"/>'))
    priors = urdf_priors(RobotModel.from_urdf(turned), 0.01, shape_margin=0.0)
    corners = np.array(list(product((-0.2, 0.2), (-0.1, 0.1), (-0.3, 0.3))))
    c = np.sqrt(0.5)
    along = (
        corners @ np.array([[c, c, 0.0], [-c, c, 0.0], [0.0, 0.0, 1.0]]) @ BOUND_AXES.T
    )
    np.testing.assert_allclose(priors.com_low[0], along.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(priors.com_high[0], along.max(axis=0), atol=1e-12)
    G, g, _ = priors.limits()
    corner_of_box = 2.0 * np.array([1.0, 0.2, -0.2, 0.0])  # 2 kg
    assert (np.abs([0.2, -0.2, 0.0]) < priors.com_high[0, :3]).all()
    assert (G @ corner_of_box > g).sum() == 1, "inside the box, outside the hull"


def assert_solid(found, half=HALF):
    """The bounds are those of the cube of the URDF's inertia."""
    np.testing.assert_allclose(
        found, [COM - half - MARGIN, COM + half + MARGIN], atol=1e-6
    )


def test_a_mesh_bounds_the_com(bounds):
    np.testing.assert_allclose(bounds(), [LOW - MARGIN, HIGH + MARGIN], atol=1e-6)
    wider = '<collision><geometry><box size="0.4 0.1 0.1"/></geometry></collision>'
    low, high = bounds(extra=wider)
    np.testing.assert_allclose((low[0], high[0]), [-0.22, 0.22], atol=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 'scale="1000 1000 1000"'},  # mm
        {"scale": 'scale="0.001 0.001 0.001"'},
        {
            "scale": 'scale="0.25 0.25 0.25"'
        },  # around the CoM, but smaller than the mass is
        {"xyz": "0.2 0 0"},  # the URDF's CoM is outside
        {"file": "no.obj"},
        {"file": "../../outside.obj"},  # not in the robot's package
    ],
)
def test_a_mesh_that_does_not_fit_is_not_believed(bounds, wrong):
    half = 0.1 if "0.25" in wrong.get("scale", "") else HALF
    assert_solid(bounds(half=half, **wrong), half)


def test_a_mesh_with_y_up_counts_in_both_readings(tmp_path):
    box = "-1 -2 -3 1 -2 -3 1 2 3"
    (tmp_path / "m.dae").write_text(
        '<COLLADA><asset><up_axis>Y_UP</up_axis></asset><library_geometries><geometry id="g"><mesh>'
        f'<source id="s"><float_array>{box}</float_array></source>'
        '<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>'
        '<triangles><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>'
        "</mesh></geometry></library_geometries><library_visual_scenes><visual_scene>"
        '<node><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>'
        "</COLLADA>"
    )
    shapes = VISUAL.format(file="m.dae", scale="", xyz="0 0 0")
    reader = ShapeReader(URDF.format(i=1.0, shapes=shapes), tmp_path / "r.urdf")
    assert reader.bounds("a") is None
    np.testing.assert_allclose(
        reader.bounds("a", meshes=True), [[-1, -3, -3], [1, 3, 3]]
    )
