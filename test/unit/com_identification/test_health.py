"""The record of a robot: what changed, how often that is false, and that nothing is lost."""

import contextlib
import itertools
import multiprocessing
import os
import re
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from html_page import assert_report

from com_identification.commands.com_health import main
from com_identification.exceptions import HealthError
from com_identification.health.changes import compare, history
from com_identification.health.records import HealthDatabase, Record, hash_files
from com_identification.regression.priors import urdf_priors
from com_model import RobotModel, Sesc

pytestmark = pytest.mark.slow

URDF = Path(__file__).resolve().parents[3] / "src/robot_descriptions/urdf/biped3.urdf"
MODEL = RobotModel.from_file(URDF)
FORK = multiprocessing.get_context("fork")
COM_STD = 0.01
SHARP = 300.0  # information over the prior's, of what the data determine


class Robots:
    """Robots whose bodies are drawn from the prior, and linear data about them."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.priors = urdf_priors(MODEL, COM_STD, 0.05)
        self.used = self.priors.used
        self.count = int(self.used.sum())

    def truth(self, wrong=1.0):
        return wrong * self.rng.normal(size=self.count)

    def moved(self, x, body, step):
        """The parameters after a body's CoM moved, m."""
        change = x.copy()
        change[4 * body + 1 : 4 * body + 4] += np.asarray(step) / COM_STD
        return change

    def data(self, unseen=6):
        """Information of a recording: some directions are not seen, the others more or less."""
        root = self.rng.normal(size=(self.count - unseen, self.count))
        return (
            SHARP
            * root.T
            @ (self.rng.uniform(0.0, 1.0, len(root))[:, None] * root)
            / self.count
        )

    def record(self, x, day=0, information=None, priors=None, **given):
        """The identification of a robot: the posterior of noisy linear data."""
        priors = priors or self.priors
        L = self.data() if information is None else information
        F = self.priors.factor
        values, V = np.linalg.eigh(L)
        values = np.maximum(values, 0.0)
        pull = L @ x + V @ (np.sqrt(values) * self.rng.normal(size=self.count))
        inverse = np.linalg.inv(F)
        L, pull = inverse.T @ L @ inverse, inverse.T @ pull  # of theta - the URDF's
        own = np.linalg.inv(priors.factor)
        C = np.linalg.inv(L + own.T @ own)
        C = (C + C.T) / 2.0
        at = priors.parameters - self.priors.parameters
        theta = priors.parameters + C @ (pull - L @ at)
        return Record(
            **{
                "robot": "biped3",
                "serial": "7",
                "taken": f"2026-11-{1 + day:02d} 12:00:00+00:00",
                "source": "bag",
                "path": "walk",
                "data_hash": str(self.rng.integers(2**62)),
                "version": "0",
                "kinematics": "k",
                "urdf": MODEL.xml,
                "bodies": MODEL.bodies.names,
                "parameters": theta,
                "covariance": C,
                "prior_mass": priors.mass,
                "prior_com": priors.com,
                "prior_mass_std": priors.mass_std,
                "prior_com_std": priors.com_std,
                "total_mass": (12.0, 0.1),
                "mass_on_feet": None,
                "sensors": {"force_bias": {"l_sole z": (0.0, 0.1, 1.0)}},
                "issues": (),
                **given,
            }
        )


@pytest.fixture
def robots():
    return Robots()


class TestChanges:
    @pytest.mark.parametrize("wrong", [0.5, 2.0])
    def test_false_alarms_are_as_rare_as_stated(self, wrong):
        robots, stated, count = Robots(3), 0.1, 100
        alarms = 0
        for _ in range(count):
            x = robots.truth(wrong)
            alarms += bool(compare(robots.record(x), robots.record(x), stated).changes)
        assert alarms <= stated * count + 3.0 * np.sqrt(stated * count)
        assert alarms > 0  # a test that never alarms would show nothing

    def test_what_moved_is_found_with_its_size(self, robots):
        found = 0
        for i in range(20):
            x, step = robots.truth(), [0.02, 0.0, -0.01]
            L = robots.data(2)
            pair = (
                robots.record(x, 0, L),
                robots.record(robots.moved(x, i % 3, step), 1),
            )
            changes = compare(*pair).changes
            assert changes
            first = changes[0]
            name = MODEL.bodies.names[i % 3]
            assert name in (first.name, *first.instead)
            if (first.what, first.name) == ("com", name):
                found += 1
                gap = np.abs(np.array(first.value) - step) / first.std
                assert gap.max() < 4.5
        assert found >= 15

    def test_what_only_the_prior_says_is_neither_change_nor_proof(self, robots):
        x = robots.truth()
        L = robots.data()
        L[1:4, :] = L[:, 1:4] = 0.0  # nothing on the root's CoM
        before = robots.record(x, 0, L)
        after = robots.record(robots.moved(x, 0, [0.5, 0.0, 0.0]), 1, L)
        comparison = compare(before, after)
        assert not comparison.changes
        assert comparison.detectable[MODEL.bodies.names[0]] > 1.0
        assert comparison.detectable[MODEL.bodies.names[1]] < 0.02

    def test_a_corrected_urdf_is_no_change(self, robots):
        x, stated, count = robots.truth(), 0.1, 100
        first = robots.record(x)
        mass, com, *_ = first.by_body
        priors = replace(robots.priors, mass=mass, com=com)
        alarms = sum(
            bool(compare(first, robots.record(x, 1, priors=priors), stated).changes)
            for _ in range(count)
        )
        assert alarms <= stated * count + 3.0 * np.sqrt(stated * count)
        after = robots.record(robots.moved(x, 1, [0.03, 0.0, 0.0]), 1, priors=priors)
        assert MODEL.bodies.names[1] in {c.name for c in compare(first, after).changes}

    def test_a_sensors_zero_that_drifted(self, robots):
        x, L = robots.truth(), robots.data()
        given = {
            "force_bias": {"l_sole z": (3.0, 0.1, 1.0), "l_sole x": (9.0, 0.95, 1.0)}
        }
        zeros = {
            "force_bias": {"l_sole z": (0.0, 0.1, 1.0), "l_sole x": (0.0, 0.95, 1.0)}
        }
        before = robots.record(x, 0, L, sensors=zeros)
        changes = compare(before, robots.record(x, 1, L, sensors=given)).changes
        assert [c.name for c in changes] == [
            "force_bias l_sole z"
        ]  # x is not determined
        assert "changed by +3 ± 0.14 N (" in str(changes[0])

    def test_history_starts_again_at_a_change(self, robots):
        x, L = robots.truth(), robots.data(0)
        y = robots.moved(x, 1, [0.05, 0.0, 0.0])
        records = [robots.record(v, i, L) for i, v in enumerate((x, x, y, y))]
        steps = history(records)
        assert [bool(s.changes) for s in steps] == [False, True, False]
        assert [s.old for s in steps] == [records[0], records[0], records[2]]

    def test_a_slow_drift_is_found_though_sensors_change_each_time(self, robots):
        x, L = robots.truth(), robots.data(0)
        records = []
        for i in range(12):
            zero = {"force_bias": {"l_sole z": (float(i), 0.1, 1.0)}}
            moved = robots.moved(x, 1, [0.0015 * i, 0.0, 0.0])
            records.append(robots.record(moved, i, L, sensors=zero))
        steps = history(records)
        assert all(s.changes for s in steps)  # the sensor's zero
        changed = [c.name for s in steps for c in s.changes if c.what == "com"]
        assert MODEL.bodies.names[1] in changed
        pairs = itertools.pairwise(records)
        assert not [
            c for a, b in pairs for c in compare(a, b).changes if c.what == "com"
        ]

    def test_other_frames_are_not_compared(self, robots):
        x = robots.truth()
        other = replace(robots.record(x), kinematics="other")
        assert "frames differ" in compare(robots.record(x), other).problem


class TestDatabase:
    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "robots.db"

    def test_what_is_read_is_what_was_written(self, path, robots):
        records = [robots.record(robots.truth(), day) for day in (2, 0, 1)]
        database = HealthDatabase(path, create=True)
        assert [database.append(r) for r in (*records, records[0])] == [
            True,
            True,
            True,
            False,
        ]
        back = HealthDatabase(path).records("biped3", "7")
        assert [r.key for r in back] == [records[i].key for i in (1, 2, 0)]
        for name in ("parameters", "covariance", "prior_com"):
            np.testing.assert_array_equal(
                getattr(back[2], name), getattr(records[0], name)
            )
        assert back[2].sensors == {"force_bias": {"l_sole z": [0.0, 0.1, 1.0]}}
        assert HealthDatabase(path).records("biped3", "8") == []

    def test_a_url_is_for_sqlalchemy(self, path, robots):
        pytest.importorskip("sqlalchemy")
        database = HealthDatabase(f"sqlite:///{path}", create=True)
        record = robots.record(robots.truth())
        assert database.append(record)
        assert not database.append(record)
        assert [r.key for r in HealthDatabase(path).records()] == [record.key]
        with pytest.raises(HealthError, match="no URL of a database"):
            HealthDatabase("nonsense://x")

    def test_a_locked_database_loses_nothing(self, path, robots):
        first, second = (robots.record(robots.truth(), day) for day in (0, 1))
        HealthDatabase(path, create=True).append(first)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        database = HealthDatabase(path, create=True, wait=0.05)
        with pytest.raises(
            HealthError, match=r"another program writes to it.*is added with"
        ):
            database.append(second)
        other.execute("ROLLBACK")
        assert {r.key for r in database.records()} == {first.key, second.key}
        third = robots.record(robots.truth(), 2)
        database.append(third)
        assert not list(Path(f"{path}.pending").iterdir())
        keys = {
            row[0] for row in sqlite3.connect(path).execute("SELECT id FROM records")
        }
        assert keys == {first.key, second.key, third.key}

    def test_identifications_and_their_bags_are_written_together_or_not_at_all(
        self, path, robots
    ):
        records = [robots.record(robots.truth(), day) for day in (0, 1)]
        database = HealthDatabase(path, create=True)
        bags = [
            (f"bag{i}", "stamp", record.data_hash, "")
            for i, record in enumerate(records)
        ]
        with pytest.raises(
            ValueError, match="zip"
        ):  # a row that is too short, after all others
            database.append_all(records, [*bags, ("bag2",)])
        assert (database.records(), database.bags()) == ([], [])
        assert database.append_all(records, bags) == 2
        assert database.append_all(records, bags) == 0
        assert [r.key for r in database.records()] == [r.key for r in records]
        assert sorted(database.bags()) == bags

    def test_a_damaged_file_that_waits_is_named_and_the_new_record_is_written(
        self, path, robots
    ):
        first, second = (robots.record(robots.truth(), day) for day in (0, 1))
        database = HealthDatabase(path, create=True)
        database.append(first)
        waiting = Path(f"{path}.pending", "broken.json")
        waiting.parent.mkdir()
        waiting.write_text("{")
        with pytest.raises(HealthError, match=r"broken\.json.*Move it away"):
            database.append(second)
        assert [p.name for p in waiting.parent.iterdir()] == ["broken.json"]
        keys = {
            row[0] for row in sqlite3.connect(path).execute("SELECT id FROM records")
        }
        assert keys == {first.key, second.key}

    def test_a_damaged_database_is_left_as_it_is(self, path, robots):
        record = robots.record(robots.truth())
        HealthDatabase(path, create=True).append(robots.record(robots.truth()))
        data = bytearray(path.read_bytes())
        data[100:3000] = bytes(2900)
        for damaged in (bytes(data), b"no database at all" * 100):
            path.write_bytes(damaged)
            with pytest.raises(
                HealthError, match=r"damaged and stays|not a record of robots"
            ):
                HealthDatabase(path).records()
            with pytest.raises(HealthError, match="is added with the next one"):
                HealthDatabase(path, create=True, wait=0.05).append(record)
            assert path.read_bytes() == damaged
        path.unlink()
        database = HealthDatabase(path, create=True)
        assert database.append(robots.record(robots.truth()))
        assert record.key in {r.key for r in database.records()}

    def test_there_must_be_a_record(self, path):
        with pytest.raises(HealthError, match=r"--record .* makes one"):
            HealthDatabase(path)

    def test_a_damaged_row_says_so(self, path, robots):
        HealthDatabase(path, create=True).append(robots.record(robots.truth()))
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE records SET body = substr(body, 1, 500)")
        database = HealthDatabase(path)
        assert database.records() == []
        assert "a record is damaged" in database.damaged[0]
        assert main(["show", str(path)]) == 2

    def test_one_damaged_row_does_not_hide_the_others(self, path, robots, capsys):
        good = [robots.record(robots.truth(), day) for day in (1, 2)]
        HealthDatabase(path, create=True).append_all(good)
        values = "('x', 'biped3', '7', '2026', '{\"arrays\": \"\x1b[31m\"}')"
        with sqlite3.connect(path) as connection:
            connection.execute(f"INSERT INTO records VALUES {values}")
        database = HealthDatabase(path)
        assert {r.key for r in database.records()} == {r.key for r in good}
        assert database.damaged[0].startswith("x: a record is damaged")
        assert main(["show", str(path)]) == 0
        assert "left out: x: a record is damaged" in capsys.readouterr().err

    @pytest.mark.parametrize("number", [np.nan, np.inf])
    def test_a_number_that_is_none_is_damage_and_no_record(self, robots, number):
        record = robots.record(robots.truth())
        for name in ("parameters", "covariance", "total_mass"):
            wrong = np.array(getattr(record, name), dtype=float)
            wrong.flat[0] = number
            text = replace(record, **{name: wrong}).to_json()
            with pytest.raises(HealthError, match=r"not finite|is no number"):
                Record.from_json(text)

    def test_two_writers(self, path):
        writers = [
            FORK.Process(target=_write, args=(path, seed, 15)) for seed in (1, 1, 2)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert [writer.exitcode for writer in writers] == [0, 0, 0]
        assert len(HealthDatabase(path).records()) == 30  # the same fifteen twice

    def test_killed_while_writing(self, path):
        done = set()
        for seed in range(5):
            keys, end = multiprocessing.Pipe(duplex=False)
            writer = FORK.Process(target=_write, args=(path, seed, 10**6, end))
            writer.start()
            end.close()
            done |= {keys.recv() for _ in range(4)}
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
            with contextlib.suppress(EOFError):
                while keys.poll():
                    done.add(keys.recv())
        there = {record.key for record in HealthDatabase(path).records()}
        assert len(done) >= 20
        assert done <= there


@pytest.fixture
def server(monkeypatch, tmp_path):
    """URL of an empty database of a server: COM_TEST_DATABASE=postgresql+psycopg://host/empty."""
    url = os.environ.get("COM_TEST_DATABASE") or pytest.skip(
        "COM_TEST_DATABASE names no server"
    )
    sqlalchemy = pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("HOME", str(tmp_path))  # where identifications wait
    engine = sqlalchemy.create_engine(url)
    assert not sqlalchemy.inspect(engine).has_table("records"), f"{url} is not empty"
    yield SimpleNamespace(url=url, engine=engine, text=sqlalchemy.text)
    with engine.begin() as connection:
        for table in ("records", "bags"):
            connection.execute(sqlalchemy.text(f"DROP TABLE IF EXISTS {table}"))


class TestServer:
    def test_an_empty_database_says_so(self, server):
        with pytest.raises(HealthError, match="it is not a record of robots"):
            HealthDatabase(server.url)

    def test_writers_that_make_the_tables_and_add_the_same(self, server):
        writers = [
            FORK.Process(target=_write, args=(server.url, s, 15)) for s in (1, 1, 2)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert [writer.exitcode for writer in writers] == [0, 0, 0]
        assert len(HealthDatabase(server.url).records()) == 30

    def test_killed_while_writing(self, server):
        keys, end = multiprocessing.Pipe(duplex=False)
        writer = FORK.Process(target=_write, args=(server.url, 1, 10**6, end))
        writer.start()
        end.close()
        done = {keys.recv() for _ in range(10)}
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert done <= {record.key for record in HealthDatabase(server.url).records()}

    def test_locked_it_waits_for_a_time_and_loses_nothing(self, server, robots):
        first, second = (robots.record(robots.truth(), day) for day in (0, 1))
        HealthDatabase(server.url, create=True).append(first)
        database = HealthDatabase(server.url, create=True, wait=0.2)
        with server.engine.connect() as other:
            other.execute(server.text("LOCK TABLE records IN ACCESS EXCLUSIVE MODE"))
            with pytest.raises(
                HealthError, match=r"another program writes to it.*is added with"
            ):
                database.append(second)
        assert {r.key for r in database.records()} == {first.key, second.key}
        assert not database.append(first)
        assert len(HealthDatabase(server.url).records()) == 2


class TestCommand:
    @pytest.fixture
    def path(self, tmp_path, robots):
        path, x, L = tmp_path / "robots.db", robots.truth(), robots.data(0)
        database = HealthDatabase(path, create=True)
        database.append(robots.record(x, 0, L))
        database.append(robots.record(robots.moved(x, 0, [0.02, 0.0, 0.0]), 3, L))
        return path

    def test_show(self, path, capsys):
        picture = path.with_suffix(".png")
        assert main(["show", str(path), "--plot", str(picture), "--check"]) == 1
        said = capsys.readouterr().out
        body = MODEL.bodies.names[0]
        assert re.search(
            rf"since 2026-11-01 .*: CoM of {body} moved x \+(19|2[01])", said
        )
        assert "false alarms: at most 1 of 100" in said
        assert picture.read_bytes().startswith(b"\x89PNG")
        page = path.with_suffix(".html")
        assert main(["show", str(path), "--plot", str(page)]) == 0
        shown = assert_report(page.read_text())
        assert f"CoM of {body} moved x" in shown.paragraphs[0]
        assert f"export {path} newest.urdf" in shown.text
        assert main(["show", str(path), "--serial", "8"]) == 2
        assert "no identification of such a robot" in capsys.readouterr().err

    def test_exports(self, path, tmp_path):
        last = HealthDatabase(path).records()[-1]
        for suffix in (".csv", ".urdf", ".xml", ".parquet"):
            if suffix == ".parquet":
                pytest.importorskip("pyarrow")
            assert main(["export", str(path), str(tmp_path / f"out{suffix}")]) == 0
        lines = (tmp_path / "out.csv").read_text().splitlines()
        bodies = int((MODEL.bodies.mass >= 0.0).sum())
        assert len(lines) == 1 + 2 * (1 + 4 * bodies + 1)
        corrected = RobotModel.from_file(tmp_path / "out.urdf")
        q = np.full(MODEL.n_joints, 0.3)
        mass, com = last.by_body[:2]
        assert corrected.mass == pytest.approx(mass.sum())
        mujoco = pytest.importorskip("mujoco")
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
        data = mujoco.MjData(model)
        for name, value in zip(MODEL.joint_names, q, strict=True):
            data.joint(name).qpos = value
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(
            data.subtree_com[0], Sesc(corrected).com(q), atol=1e-6
        )
        assert main(["export", str(path), str(tmp_path / "out.sdf")]) == 2
        assert com.shape == (bodies, 3)

    def test_the_readings_have_a_hash(self, tmp_path):
        (tmp_path / "a").write_text("1")
        before = hash_files(tmp_path)
        (tmp_path / "a").write_text("2")
        assert hash_files(tmp_path) != before


def _write(path, seed, count, keys=None):
    robots = Robots(seed)
    for day in range(count):
        record = robots.record(robots.truth(), day % 28)
        HealthDatabase(path, create=True).append(record)
        if keys is not None:
            keys.send(record.key)
