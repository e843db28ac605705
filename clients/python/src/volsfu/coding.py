"""Clouds, and the codecs of the library."""

import ctypes
import json
from ctypes import POINTER, byref, c_float, c_size_t, c_uint8

import numpy

from . import _library, errors


class Cloud:
    """Points with colours.

    positions is an array of float32 of the shape (points, 3): x right, y up, z towards the viewer. colors is an array of
    uint8 of the same shape, sRGB. Arrays of other types are converted; without colors all points are white.
    """

    __slots__ = ("positions", "colors")

    def __init__(self, positions, colors=None):
        self.positions = _points("positions", positions, numpy.float32)
        if colors is None:
            colors = numpy.full(self.positions.shape, 255, numpy.uint8)
        self.colors = _points("colors", colors, numpy.uint8)
        if len(self.colors) != len(self.positions):
            raise ValueError(
                f"the cloud has {len(self.positions)} positions and {len(self.colors)} colours, expected equal numbers"
            )

    def __len__(self):
        return len(self.positions)

    def __repr__(self):
        return f"Cloud({len(self)} points)"

    def box(self):
        """Returns the corners of the smallest box around the points: two arrays of three coordinates."""
        if len(self) == 0:
            raise ValueError("a cloud without points has no box")
        return self.positions.min(axis=0), self.positions.max(axis=0)

    def sample(self, count, random=None):
        """Returns a cloud of at most count of the points, chosen at random by a numpy.random.Generator."""
        if count >= len(self):
            return self
        chosen = (random or numpy.random.default_rng()).choice(len(self), count, replace=False)
        return Cloud(self.positions[chosen], self.colors[chosen])


def _points(name, values, kind):
    array = numpy.ascontiguousarray(values, kind)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"{name} have the shape {array.shape}, expected (points, 3)")
    return array


def codecs():
    """Returns the codecs of the library: dictionaries with name, fourcc, encodes and max_points."""
    return json.loads(_library.text("volsfu_get_codecs"))["codecs"]


def fourcc(codec):
    """Returns the four bytes of a codec."""
    code = codec.encode("ascii", "replace")
    if len(code) != 4:
        raise ValueError(f"the codec is {codec!r}, expected four characters, such as 'zstd'")
    return code


def box_of(corners):
    """Returns two corners as the struct of the library."""
    low, high = (numpy.asarray(corner, numpy.float32) for corner in corners)
    if low.shape != (3,) or high.shape != (3,):
        raise ValueError(f"the box is {corners!r}, expected two corners of three coordinates")
    box = _library.Box()
    box.min[:], box.max[:] = low.tolist(), high.tolist()
    return box


def encode(cloud, codec="zstd", box=None, bits=11, speed=10, color_quality=85):
    """Encodes a cloud as one frame and returns the bytes.

    codec is the FourCC of a codec. The longest edge of box, two corners, is divided into 2**bits - 1 steps; points
    outside are moved to the box. All tiles and qualities of an object share one box. Without box, the box of this cloud
    is used. speed is 1 (the smallest frames) to 10 (the fastest encoder), and color_quality of codecs with lossy colours
    1 to 100.
    """
    code = fourcc(codec)
    if len(cloud) == 0:
        return b""
    encoding = _library.Encoding(
        codec=code, position_bits=bits, speed=speed, color_quality=color_quality, box=box_of(box or cloud.box())
    )
    points = _library.Points(
        positions=cloud.positions.ctypes.data_as(POINTER(c_float)),
        colors=cloud.colors.ctypes.data_as(POINTER(c_uint8)),
        count=len(cloud),
    )
    length, capacity = c_size_t(), 16 * len(cloud) + 1024
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        try:
            _library.call("volsfu_encode", byref(encoding), byref(points), buffer, capacity, byref(length))
            return ctypes.string_at(buffer, length.value)
        except errors.BufferTooSmall:
            capacity = length.value


def decode(codec, data):
    """Decodes a frame and returns the cloud."""
    code = fourcc(codec)
    # No codec has fewer than eight bits per point in ordinary frames. If a frame has, it is decoded a second time.
    capacity = len(data)
    while True:
        positions, colors = numpy.empty((capacity, 3), numpy.float32), numpy.empty((capacity, 3), numpy.uint8)
        points = _library.Points(
            positions=positions.ctypes.data_as(POINTER(c_float)),
            colors=colors.ctypes.data_as(POINTER(c_uint8)),
            capacity=capacity,
        )
        try:
            _library.call("volsfu_decode", code, bytes(data), len(data), byref(points))
            return Cloud(positions[: points.count].copy(), colors[: points.count].copy())
        except errors.BufferTooSmall:
            capacity = points.count
