"""The part of `power` that the recorded programs use."""

import json
import mmap
import os
import threading

from disk_writes import SECTOR

# The disk has a file system, followed by sectors for marks, to which no file system writes.
DISK_MB, FILES_MB = 640, 608
MARKS_AT = FILES_MB << 20


class Marks:
    """Sectors after the file system. A mark bypasses the guest's cache and is not flushed, so that
    it makes nothing durable."""

    def __init__(self, device):
        self.device = os.open(device, os.O_WRONLY | os.O_DIRECT)
        self.place, self.lock = 0, threading.Lock()
        # A write that bypasses the cache requires page-aligned memory.
        self.page = mmap.mmap(-1, mmap.PAGESIZE)

    def write(self, mark):
        with self.lock:
            self.page[:SECTOR] = json.dumps(mark).encode().ljust(SECTOR)
            at = MARKS_AT + self.place * SECTOR
            os.pwritev(self.device, [memoryview(self.page)[:SECTOR]], at)
            self.place += 1


class Broken(Exception):
    """A violated condition."""
