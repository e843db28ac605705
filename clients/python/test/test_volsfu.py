"""Tests of the package against a real server. python_test.go runs them, with the server's address in VOLSFU_SERVER."""

import json
import os
import struct
import tempfile
import threading
import time
import unittest

import numpy

import volsfu

_server = os.environ["VOLSFU_SERVER"]
_box = ([-1, 0, -1], [1, 2, 1])


def _grid_cloud(random, points=2000, bits=10):
    """Returns a cloud whose positions are exactly on the grid of _box with that number of bits."""
    steps = random.integers(0, 1 << bits, (points, 3))
    step = numpy.float32(2) / numpy.float32((1 << bits) - 1)
    low = numpy.array(_box[0], numpy.float32)
    return volsfu.Cloud(low + steps.astype(numpy.float32) * step, random.integers(0, 256, (points, 3)))


def _sorted(cloud):
    """Returns positions and colours as rows in an order that does not depend on the codec's."""
    rows = numpy.concatenate([cloud.positions.view(numpy.uint32), cloud.colors.astype(numpy.uint32)], axis=1)
    return rows[numpy.lexsort(rows.T)]


def _join(room, identity, **settings):
    return volsfu.connect(_server, room=room, identity=identity, min_uplink=200_000_000, **settings)


class Clouds(unittest.TestCase):
    def test_shapes(self):
        for positions, colors in (([1, 2, 3], None), ([[1, 2]], None), ([[1, 2, 3]], [[1, 2, 3], [4, 5, 6]])):
            with self.assertRaises(ValueError):
                volsfu.Cloud(positions, colors)
        cloud = volsfu.Cloud([[0, 1, 2]])
        self.assertEqual((cloud.positions.dtype, cloud.colors.tolist()), (numpy.float32, [[255, 255, 255]]))
        with self.assertRaises(ValueError):
            volsfu.Cloud(numpy.empty((0, 3))).box()

    def test_every_codec(self):
        random = numpy.random.default_rng(1)
        cloud = _grid_cloud(random)
        for codec in volsfu.codecs():
            if not codec["encodes"]:
                continue
            with self.subTest(codec["name"]):
                decoded = volsfu.decode(codec["fourcc"], volsfu.encode(cloud, codec["fourcc"], _box, bits=10))
                self.assertEqual(len(decoded), len(cloud))
                self.assertLess(numpy.abs(decoded.positions.mean(0) - cloud.positions.mean(0)).max(), 1e-3)
        self.assertEqual(volsfu.encode(volsfu.Cloud(numpy.empty((0, 3)))), b"")

    def test_more_points_than_bytes(self):
        # One colour and few places need less than a byte for each point.
        cloud = volsfu.Cloud(numpy.zeros((50_000, 3)) + [[0, 1, 0]])
        data = volsfu.encode(cloud, "zstd", _box, bits=4)
        self.assertLess(len(data), len(cloud))
        self.assertEqual(len(volsfu.decode("zstd", data)), len(cloud))

    def test_errors(self):
        cloud = volsfu.Cloud([[0, 1, 0]])
        with self.assertRaises(volsfu.MalformedError):
            volsfu.decode("zstd", b"no frame")
        with self.assertRaisesRegex(volsfu.CodecError, "none"):
            volsfu.decode("none", b"no frame")
        with self.assertRaisesRegex(volsfu.ArgumentError, "31"):
            volsfu.encode(cloud, box=_box, bits=31)
        for wrong in ("draco", "zst", "zstö"):
            with self.assertRaises(ValueError):
                volsfu.encode(cloud, wrong)
        with self.assertRaises(ValueError):
            volsfu.encode(cloud, box=([0, 0], [1, 1]))


class Sessions(unittest.TestCase):
    def test_hundred_frames_bit_exactly(self):
        self.exchange("exact")

    def test_hundred_encrypted_frames_bit_exactly(self):
        self.exchange("secret", passphrase="a passphrase for the test")

    def exchange(self, room, **settings):
        random = numpy.random.default_rng(2)
        captures = [_grid_cloud(random) for _ in range(100)]
        indices = {_sorted(cloud).tobytes(): index for index, cloud in enumerate(captures)}
        with _join(room, "ada", receive=False, **settings) as ada, _join(room, "grace", **settings) as grace:
            body = ada.publish("body", box=_box, qualities=[volsfu.Quality("all", bits=10)])
            ada.wait_for("connected", 30)
            grace.wait_for("published", 30)
            missing, altered, described = set(range(len(captures))), [], set()

            def receive():
                for frame in grace.frames(timeout=20):
                    described.add((frame.participant, frame.publication, frame.codec, frame.first <= frame.complete))
                    index = indices.get(_sorted(frame.decode()).tobytes())
                    if index is None:
                        altered.append(frame.number)
                    missing.discard(index)
                    if not missing:
                        return

            receiver = threading.Thread(target=receive)
            receiver.start()
            # Frames leave only while the receiver is connected, and the server drops frames on a congested path, as
            # which a busy machine counts. So the captures are sent repeatedly.
            calls, deadline = 0, time.monotonic() + 60
            while missing and time.monotonic() < deadline:
                body.send(captures[calls % len(captures)])
                calls += 1
                time.sleep(1 / 60)
            receiver.join()
            totals = grace.statistics()["totals"]
        self.assertEqual((missing, altered), (set(), []), totals)
        self.assertEqual(described, {("ada", "body", "zstd", True)})

    def test_room_choices_and_errors(self):
        with _join("room", "ada") as ada, _join("room", "grace") as grace:
            body = ada.publish("body", tiles=[volsfu.Tile(([-1, 0, -1], [0, 2, 1]), "left"), volsfu.Tile(_box)])
            grace.wait_for("published", 30)
            described = [p for p in grace.room()["participants"] if p["identity"] == "ada"][0]["publications"][0]
            self.assertEqual((described["name"], len(described["tiles"]), len(described["qualities"])), ("body", 2, 2))
            grace.set_quality("ada", "body", 0)
            grace.set_quality("ada", "body", "off", tile=1)
            grace.set_viewpoint((0, 1.6, 3))
            grace.set_limits(max_bitrate=10_000_000)
            body.set_pose(position=(1, 0, 0))
            self.assertAlmostEqual(grace.server_time(), time.time(), delta=5)
            with self.assertRaises(ValueError):
                grace.set_quality("ada", "body", "best")
            with self.assertRaises(volsfu.RefusedError):
                grace.set_quality("ada", "body", 17)
            with self.assertRaises(ValueError):
                body.send(volsfu.Cloud([[0, 0, 0]]))
            with self.assertRaises(volsfu.RefusedError):
                ada.publish("body", box=_box)
            with self.assertRaises(ValueError):
                ada.publish("other")
            with self.assertRaises(volsfu.Timeout):
                grace.next_frame(0)
            body.unpublish()
            grace.wait_for("unpublished", 30)
        with self.assertRaises(volsfu.Error):
            grace.room()
        with self.assertRaises(volsfu.Error):
            volsfu.connect("ws://127.0.0.1:1", room="room", identity="ada")


class Records(unittest.TestCase):
    def write(self, content):
        file = tempfile.NamedTemporaryFile(delete=False)
        self.addCleanup(os.unlink, file.name)
        with file:
            file.write(content)
        return file.name

    def journal(self, *records):
        content = b"VOLJRNL1"
        for kind, payload in records:
            content += struct.pack("<4sII", kind, len(payload), 0) + payload
        # The next record was cut off.
        return self.write(content + struct.pack("<4sII", kind, 100, 0) + b"cut")

    def test_journals(self):
        times = struct.pack("<4q", 7, 1_700_000_000_500_000_000, 0, 0)
        points = struct.pack("<II6f6B", 0, 2, 0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6)
        head, frames = volsfu.read_journal(
            self.journal((b"head", b'{"content": "points"}'), (b"fram", times + points))
        )
        frame = next(frames)
        self.assertEqual((head["content"], frame.number, frame.capture), ("points", 7, 1_700_000_000.5))
        self.assertEqual(frame.decode().positions.tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(frame.cloud.colors.tolist(), [[1, 2, 3], [4, 5, 6]])
        encoded = volsfu.encode(frame.cloud, box=([0, 0, 0], [8, 8, 8]), bits=8)
        head, frames = volsfu.read_journal(
            self.journal(
                (b"head", b'{"content": "encoded"}'),
                (b"tile", times + struct.pack("<HBx4s", 3, 1, b"zstd") + encoded),
            )
        )
        frame = next(frames)
        self.assertIsNone(next(frames, None))
        self.assertEqual((frame.tile, frame.quality, frame.codec, len(frame.decode())), (3, 1, "zstd", 2))
        for content in (b"", b"VOLJRNL1", b"VOLJRNL1" + struct.pack("<4sII", b"head", 100, 0) + b"{"):
            with self.assertRaises(ValueError):
                volsfu.read_journal(self.write(content))

    def test_real_journal(self):
        path = os.environ.get("VOLSFU_JOURNAL")
        if not path:
            self.skipTest("VOLSFU_JOURNAL is not set")
        head, frames = volsfu.read_journal(path)
        sizes = [len(frame.decode()) for frame in frames]
        self.assertEqual(head["content"], "points")
        self.assertGreater(len(sizes), 1)
        self.assertGreater(min(sizes), 100)

    def test_frame_times(self):
        lines = [
            {"participant": "ada", "publication": "body", "tile": 0, "quality": 1, "frame": n, "bytes": 10,
             "stamps_ns": {"captured": 1_700_000_000_000_000_000}, "clocks": {},
             "layers_ms": {"service": 40.5 + n} if n else {}}
            for n in range(3)
        ]  # fmt: skip
        times = volsfu.read_frame_times(self.write("\n".join(map(json.dumps, lines)).encode() + b"\n\n"))
        self.assertEqual((len(times), times.participant[0], times.frame.tolist()), (3, "ada", [0, 1, 2]))
        self.assertTrue(numpy.isnan(times.layers["service"][0]))
        self.assertEqual(times.layers["service"][2], 42.5)
        self.assertEqual(times.stamps["captured"][0], 1_700_000_000.0)


if __name__ == "__main__":
    unittest.main()
