"""Publishes a ball ten times per second with the Python package until its input ends: publish.py URL ROOM POINTS PASSPHRASE."""

import sys
import threading

import numpy
import volsfu

url, room, points, passphrase = sys.argv[1:]
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
random = numpy.random.default_rng(1)
with volsfu.connect(url, room=room, identity="publisher", receive=False, passphrase=passphrase or None) as session:
    publisher = session.publish("body", box=([-1, -1, -1], [1, 1, 1]), frame_rate=10)
    while not ended.wait(0.1):
        positions = random.uniform(-1, 1, (int(points), 3))
        publisher.send(volsfu.Cloud(positions, random.integers(0, 256, positions.shape)))
