"""A planted slowdown is found."""

import json
import os
import tempfile
import unittest

from loading import load

speed = load(".ci/speed")


class Speed(unittest.TestCase):
    def test_slowdown_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, rate in ("old", 100), ("same", 90), ("slow", 80):
                report = {"rows": [{"messages_per_s": {"median": rate}}], "last_ns": {"median": 9}}
                with open(f"{folder}/{name}", "w", encoding="utf-8") as stub:
                    stub.write(f"#!/bin/sh\necho '{json.dumps(report)}'\n")
                os.chmod(stub.name, 0o700)
            found = [speed.slower(f"{folder}/old", f"{folder}/{new}", 3)
                     for new in ("same", "slow")]
        self.assertEqual(found, [[], ["1 B", "1 KB", "10 KB", "10 KB, TCP"]])
