"""Runs Cyclone DDS's `ddsperf` over the loopback, and `tramontane-dds perf` over shared memory.

Both write every byte, keep samples reliable, and hand them to a listener. Ours reads every byte in
place, whereas that of `ddsperf` receives a copy. As root both have the same real-time priority, so
that other processes disturb neither.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from statistics import median

LOOPBACK = (
    '<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo" multicast="true"/>'
    "</Interfaces></General></Domain></CycloneDDS>"
)
DOMAIN = 90
# Slots of the publisher, by bytes of a sample: rings of 0.4 and 1 MB. If several processes share a
# processor, a longer ring means fewer context switches.
WINDOWS = {1024: 400, 10240: 100}


def priority():
    """The command that gives both the same priority."""
    return ["chrt", "-f", "50"] if os.geteuid() == 0 and shutil.which("chrt") else []


def ddsperf(arguments):
    environment = dict(os.environ, CYCLONEDDS_URI=LOOPBACK)
    return subprocess.Popen(
        priority() + ["ddsperf", "-i", str(DOMAIN)] + arguments,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, limit_s):
    try:
        return process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def cyclone_throughput(subscribers, size, seconds):
    """Samples per second at the slowest subscriber: the median of its full seconds."""
    time_s = str(seconds + 3)
    readers = [ddsperf(["-D", time_s, "-1", "sub"]) for _ in range(subscribers)]
    time.sleep(0.5)
    writer = ddsperf(["-D", str(seconds + 2), "pub", "size", str(size)])
    finish(writer, seconds + 20)
    rates = []
    for reader in readers:
        text = finish(reader, seconds + 20)
        found = [float(rate) for rate in re.findall(r"rate ([0-9.]+) kS/s", text)]
        # The first and the last second of writing are incomplete.
        whole = [rate for rate in found if rate > 0][1:-1]
        if not whole:
            sys.exit(f"ddsperf gave no rate:\n{text}")
        rates.append(median(whole) * 1000)
    return min(rates)


def cyclone_ping(size, seconds):
    """The median round trip in us. ddsperf prints half of it."""
    pong = ddsperf(["-D", str(seconds + 3), "pong"])
    time.sleep(0.5)
    ping = ddsperf(["-D", str(seconds + 2), "ping", "size", str(size)])
    text = finish(ping, seconds + 20)
    finish(pong, seconds + 20)
    found = [float(half) for half in re.findall(r" 50% ([0-9.]+)us", text)]
    if not found:
        sys.exit(f"ddsperf gave no time:\n{text}")
    return 2 * median(found)


def ours(program, arguments, size, seconds):
    command = priority() + [program, "perf", "--json", "--rounds", "1"]
    command += ["--seconds", str(seconds), "--window", str(WINDOWS[size])]
    command += ["--bytes", str(size)] + arguments
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def throughput(program, level, subscribers, size, seconds):
    arguments = ["--level", level, "--subscribers", str(subscribers)]
    return ours(program, arguments, size, seconds)["samples_per_s"]["median"]


def ping(program, size, seconds):
    arguments = ["--mode", "ping"]
    return ours(program, arguments, size, seconds)["round_trip_us"]["p50"]["median"]
