"""The support polygon by hand, against a linear program, and what moving everything must keep."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

from com_model import GeometryError, ShapeError, SupportPolygon, fit_plane
from com_model.geometry.support import convex_hull

pytestmark = pytest.mark.slow

SQUARE = np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]], dtype=float)
GRID = st.integers(-8, 8).map(lambda i: i / 4)


def planar_points(least=1, most=12):
    return st.integers(least, most).flatmap(
        lambda m: hnp.arrays(float, (m, 2), elements=GRID)
    )


def flat(points):
    return np.column_stack([points, np.zeros(len(points))])


def margin_by_linear_program(corners, point):
    """Largest t such that point + t u stays inside for 720 directions u; else minus a distance.

    Inside a polygon the distance to the outline is the least distance along any direction; the
    hull is held as convex combinations of the contacts, never as edges.
    """
    ones = np.ones((1, len(corners)))
    inside = linprog(
        np.zeros(len(corners)), A_eq=np.vstack([corners.T, ones]), b_eq=[*point, 1.0]
    ).success
    if not inside:
        return None
    reaches = []
    for angle in np.arange(0, 2 * np.pi, np.pi / 36):
        u = np.array([[np.cos(angle)], [np.sin(angle)]])
        A = np.block([[corners.T, -u], [ones, np.zeros((1, 1))]])
        found = linprog([*np.zeros(len(corners)), -1.0], A_eq=A, b_eq=[*point, 1.0])
        reaches.append(-found.fun)
    return min(reaches)


def distance_to_hull(corners, point):
    """Distance to the convex hull: the least over all segments between two contacts, if outside."""
    best = np.inf
    for a in corners:
        for b in corners:
            length2 = (b - a) @ (b - a)
            t = np.clip((point - a) @ (b - a) / length2, 0, 1) if length2 else 0.0
            best = min(best, np.linalg.norm(point - a - t * (b - a)))
    return best


def test_square_by_hand():
    polygon = SupportPolygon.from_points(SQUARE)
    assert polygon.margin([0, 0, 5]) == pytest.approx(1.0)
    assert polygon.margin([0.75, 0.5, -3]) == pytest.approx(0.25)
    assert polygon.margin([1, 0, 0]) == pytest.approx(0.0, abs=1e-15)
    assert polygon.margin([3, 0, 0]) == pytest.approx(-2.0)
    assert polygon.margin([4, 5, 0]) == pytest.approx(-5.0)  # to the corner
    np.testing.assert_allclose(
        polygon.project([0.2, 0.3, 7]), [0.2, 0.3, 0], atol=1e-15
    )


def test_vertices_go_counter_clockwise_seen_from_above():
    for normal in np.vstack([np.eye(3), -np.eye(3), [[1, 2, 3], [-1, 0.1, -4]]]):
        R = Rotation.align_vectors([normal], [[0, 0, 1]])[0].as_matrix()
        v = SupportPolygon.from_points(SQUARE @ R.T, normal).vertices
        assert v.shape == (4, 3)
        turns = (
            np.cross(np.roll(v, -1, 0) - v, np.roll(v, -2, 0) - np.roll(v, -1, 0))
            @ normal
        )
        assert (turns > 0).all()


def test_points_inside_on_edges_and_twice_are_no_vertices():
    points = np.vstack(
        [SQUARE, SQUARE, [[0, 0, 0], [1, 0, 0], [0.5, 1, 0], [1, 1 - 1e-13, 0]]]
    )
    assert len(SupportPolygon.from_points(points).vertices) == 4


def test_noise_does_not_hide_corners():
    points = [[0, 5, 0], [1e-17, 0, 0], [2e-17, 10, 0], [1, 0, 0], [1, 10, 0]]
    np.testing.assert_allclose(
        SupportPolygon.from_points(points).vertices,
        [[0, 0, 0], [1, 0, 0], [1, 10, 0], [0, 10, 0]],
        atol=1e-12,
    )


def test_one_contact_is_a_point():
    polygon = SupportPolygon.from_points([[1, 2, 3]] * 3)
    np.testing.assert_allclose(polygon.vertices, [[1, 2, 3]])
    assert polygon.margin([1, 2, 9]) == 0.0
    assert polygon.margin([4, 6, 9]) == pytest.approx(-5.0)


def test_contacts_on_a_line_are_a_segment():
    polygon = SupportPolygon.from_points([[0, 0, 0], [2, 0, 0], [1, 0, 0], [1, 0, 0]])
    assert polygon.vertices.shape == (2, 3)
    assert polygon.margin([1, 0, 1]) == 0.0
    assert polygon.margin([1, 0.5, 1]) == pytest.approx(-0.5)
    assert polygon.margin([5, 4, 1]) == pytest.approx(-5.0)


def test_on_a_slope_the_point_falls_along_gravity():
    slope = np.radians(30)
    normal = [-np.sin(slope), 0, np.cos(slope)]
    R = Rotation.from_euler("y", -slope).as_matrix()
    polygon = SupportPolygon.from_points(SQUARE @ R.T, normal, gravity=[0, 0, -9.81])
    com = np.array([0.0, 0.0, 0.5])  # straight above the origin
    np.testing.assert_allclose(polygon.project(com), [0, 0, 0], atol=1e-15)
    assert polygon.margin(com) == pytest.approx(1.0)
    across = SupportPolygon.from_points(
        SQUARE @ R.T, normal
    )  # gravity against the normal
    assert across.margin(com) == pytest.approx(1 - 0.5 * np.sin(slope))
    assert polygon.margin([1.0, 0, 9]) == pytest.approx(1 - 1 / np.cos(slope))


def test_contacts_off_the_plane_come_onto_it_along_gravity():
    points = SQUARE + np.outer([0.1, -0.1, 0.1, -0.1], [0, 0, 1])
    polygon = SupportPolygon.from_points(points, gravity=[1, 0, -1])
    np.testing.assert_allclose(polygon.vertices[:, 2], 0.0, atol=1e-15)
    expected = {(1.1, 1.0), (-1.1, 1.0), (-0.9, -1.0), (0.9, -1.0)}
    assert {tuple(np.round(v[:2], 9)) for v in polygon.vertices} == expected


def test_soles_stand_on_their_mean_normal():
    R = np.array([np.eye(3), Rotation.from_euler("z", 90, degrees=True).as_matrix()])
    corners = [[[0.1, 0.05], [-0.1, 0.05], [-0.1, -0.05], [0.1, -0.05]]] * 2
    polygon = SupportPolygon.from_soles(R, [[0, 0.2, 0], [0, -0.2, 0]], corners)
    np.testing.assert_allclose(polygon.normal, [0, 0, 1])
    np.testing.assert_allclose(
        polygon.vertices.min(axis=0), [-0.1, -0.3, 0], atol=1e-15
    )
    np.testing.assert_allclose(polygon.vertices.max(axis=0), [0.1, 0.25, 0], atol=1e-15)


def test_point_feet_are_their_origins():
    p = [[0.3, 0.2, 0], [0.3, -0.2, 0], [-0.3, 0.2, 0], [-0.3, -0.2, 0]]
    polygon = SupportPolygon.from_soles([np.eye(3)] * 4, p, [[]] * 4, normal=(0, 0, 1))
    assert polygon.margin([0, 0, 1]) == pytest.approx(0.2)


@settings(max_examples=25, deadline=None)
@given(corners=planar_points(3, 7), point=st.tuples(GRID, GRID))
def test_margin_is_what_a_linear_program_finds(corners, point):
    margin = SupportPolygon.from_points(flat(corners)).margin([*point, 1.0])
    oracle = margin_by_linear_program(corners, point)
    if margin > 1e-6:
        # directions 5 degrees apart: the distance is at most that of the worst miss shorter
        assert oracle is not None
        assert margin <= oracle + 1e-6
        assert oracle <= margin / np.cos(np.radians(2.5)) + 1e-6
    elif margin < -1e-6:
        assert oracle is None
        assert -margin == pytest.approx(
            distance_to_hull(corners, np.array(point)), abs=1e-9
        )


@given(corners=planar_points(1, 8))
def test_hull_holds_all_points_and_is_convex(corners):
    hull = convex_hull(corners)
    assert {tuple(v) for v in hull} <= {tuple(c) for c in corners}
    if len(hull) < 3:
        assert np.linalg.matrix_rank(corners - corners[0]) < 2
        return
    edges = np.roll(hull, -1, 0) - hull
    following = np.roll(edges, -1, 0)
    assert (edges[:, 0] * following[:, 1] - edges[:, 1] * following[:, 0] > 0).all()
    assert (
        SupportPolygon.from_points(flat(corners)).margin(flat(corners)) > -1e-12
    ).all()


@settings(deadline=None)
@given(
    corners=planar_points(),
    point=st.tuples(GRID, GRID, GRID),
    turn=st.tuples(*[st.floats(-3, 3)] * 3),
    shift=st.tuples(*[st.floats(-5, 5)] * 3),
    tilt=st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)),
)
def test_moving_everything_changes_nothing(corners, point, turn, shift, tilt):
    R = Rotation.from_rotvec(turn).as_matrix()
    gravity = np.array([*tilt, -1.0])
    here = SupportPolygon.from_points(flat(corners), gravity=gravity)
    there = SupportPolygon.from_points(
        flat(corners) @ R.T + shift, R[:, 2], R @ gravity
    )
    assert there.margin(R @ point + shift) == pytest.approx(
        here.margin(point), abs=1e-9
    )
    np.testing.assert_allclose(
        there.project(R @ point + shift), R @ here.project(point) + shift, atol=1e-9
    )
    assert len(there.vertices) == len(here.vertices)


@given(corners=planar_points(), seed=st.integers(0, 1000))
def test_order_and_copies_do_not_matter(corners, seed):
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(
        np.vstack([corners, corners[rng.integers(len(corners))]])
    )
    points = flat(rng.uniform(-3, 3, (5, 2)))
    first = SupportPolygon.from_points(flat(corners)).margin(points)
    second = SupportPolygon.from_points(flat(shuffled)).margin(points)
    np.testing.assert_allclose(first, second, atol=1e-12)


@given(corners=planar_points(3), seed=st.integers(0, 1000))
def test_another_contact_never_shrinks_the_polygon(corners, seed):
    points = flat(np.random.default_rng(seed).uniform(-3, 3, (5, 2)))
    assume(len(corners) > 3)
    fewer = SupportPolygon.from_points(flat(corners[:-1])).margin(points)
    more = SupportPolygon.from_points(flat(corners)).margin(points)
    assert (more >= fewer - 1e-12).all()


def test_many_points_at_once():
    polygon = SupportPolygon.from_points(SQUARE)
    points = np.random.default_rng(0).uniform(-2, 2, (50, 3))
    margins = polygon.margin(points)
    assert margins.shape == (50,)
    np.testing.assert_array_equal(margins, [polygon.margin(p) for p in points])
    assert np.isnan(polygon.margin([0, np.nan, 0]))


def test_arrays_are_read_only_copies():
    points = SQUARE.copy()
    polygon = SupportPolygon.from_points(points)
    points[:] = 7.0
    assert polygon.margin([0, 0, 0]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="read-only"):
        polygon.vertices[0] = 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"points": np.zeros((0, 3))},
            "no contact points: a support polygon needs at least one",
        ),
        (
            {"points": [[0, 0, np.nan]]},
            "points are not finite: leave contacts of unknown position",
        ),
        ({"points": SQUARE, "gravity": [1, 0, 0]}, "gravity is parallel to the ground"),
        (
            {"points": SQUARE, "gravity": [0, 0, 0]},
            "gravity must be a finite direction other than",
        ),
        (
            {"points": SQUARE, "normal": [0, 0, np.inf]},
            "normal must be a finite direction other",
        ),
    ],
)
def test_what_defines_no_polygon_is_refused(arguments, message):
    with pytest.raises(GeometryError, match=message):
        SupportPolygon.from_points(**arguments)


def test_wrong_shapes_are_refused():
    with pytest.raises(
        ShapeError, match=r"points: expected shape \(any, 3\), got \(3,\)"
    ):
        SupportPolygon.from_points([0, 0, 0])
    with pytest.raises(
        ShapeError, match=r"point: expected shape \(3,\) or \(N, 3\), got \(2,\)"
    ):
        SupportPolygon.from_points(SQUARE).margin([0, 0])
    with pytest.raises(ShapeError, match="one entry per sole in each, got 1, 2 and 1"):
        SupportPolygon.from_soles([np.eye(3)], [[0, 0, 0]] * 2, [[]])
    with pytest.raises(
        ShapeError, match=r"corners\[0\]: expected shape \(any, 2\), got \(1, 3\)"
    ):
        SupportPolygon.from_soles([np.eye(3)], [[0, 0, 0]], [[[0, 0, 0]]])
    with pytest.raises(GeometryError, match="no contact points"):
        SupportPolygon.from_soles(np.zeros((0, 3, 3)), np.zeros((0, 3)), [])


def test_plane_through_points():
    R = Rotation.from_euler("xyz", [0.3, -0.4, 1.0]).as_matrix()
    center, normal = fit_plane(SQUARE @ R.T + [1, 2, 3])
    np.testing.assert_allclose(center, [1, 2, 3])
    np.testing.assert_allclose(normal, R[:, 2])
    np.testing.assert_allclose(fit_plane(SQUARE, up=[0, 0, -1])[1], [0, 0, -1])
    with pytest.raises(
        GeometryError, match="the points are on a line: give one beside it"
    ):
        fit_plane([[0, 0, 0], [1, 1, 1], [3, 3, 3]])
    with pytest.raises(GeometryError, match="a plane needs three finite points, got 2"):
        fit_plane([[0, 0, 0], [1, 1, 1]])
