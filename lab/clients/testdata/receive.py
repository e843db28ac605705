"""Receives and decodes with the Python package: receive.py URL ROOM SECONDS PASSPHRASE, which may be empty.

The time begins with the first frame. The program prints one JSON object.
"""

import json
import sys
import time

import volsfu

url, room, seconds, passphrase = sys.argv[1:]
decoded = failed = 0
end = None
with volsfu.connect(url, room=room, identity="python", passphrase=passphrase or None) as session:
    for frame in session.frames(timeout=60):
        try:
            decoded += len(frame.decode()) > 0
        except volsfu.Error as error:
            print(error, file=sys.stderr)
            failed += 1
        end = end or time.monotonic() + float(seconds)
        if time.monotonic() > end:
            break
print(json.dumps({"frames_decoded": decoded, "frames_undecodable": failed}))
