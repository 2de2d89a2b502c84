"""The writes to a disk in order, and the possible contents of the disk after a power loss.

The record is in the format of Linux's dm-log-writes, as QEMU's blklogwrites produces it: a sector
that describes the record and then, for each write, a sector that describes the write, and the
sectors written. A disk keeps all writes before its last flush, and any of the sectors written after
it.
"""

import os
import random
import struct
import subprocess
from dataclasses import dataclass

SECTOR = 512
MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD = 1, 2, 4


class Malformed(Exception):
    """The file is not a valid record of writes."""


@dataclass(frozen=True)
class Write:
    """One write or flush."""

    sector: int
    sectors: int
    flags: int
    # Offset of the content in the record.
    content_at: int

    @property
    def is_flush(self) -> bool:
        return bool(self.flags & FLUSH)


def read_writes(path: str) -> list[Write]:
    """All writes of a record, except those that were incomplete when the record ended."""
    writes = []
    length = os.path.getsize(path)
    with open(path, "rb") as record:
        head = record.read(SECTOR)
        if len(head) < SECTOR:
            raise Malformed(f"{path} is too short for a record of writes")
        magic, version, count, sector_bytes = struct.unpack_from("<QQQI", head)
        if (magic, version, sector_bytes) != (MAGIC, 1, SECTOR):
            raise Malformed(f"{path} is not a record of writes in sectors of {SECTOR} bytes")
        at = SECTOR
        for _ in range(count):
            record.seek(at)
            entry = record.read(32)
            if len(entry) < 32:
                break
            sector, sectors, flags, _ = struct.unpack("<QQQQ", entry)
            at += SECTOR
            write = Write(sector, sectors, flags, at)
            if not flags & DISCARD:
                at += sectors * SECTOR
            if at > length:
                break
            writes.append(write)
    return writes


class Disk:
    """A disk that replays its writes in order, and can lose power at each of them."""

    def __init__(self, image: str, record: str, writes: list[Write], loses_flushed: int = 0):
        """`image` is the disk before the first write; it is changed. A disk that falsely reports
        flushes also loses the data of its last `loses_flushed` flushes; 0 for a correct disk."""
        self.image, self.record, self.writes = image, record, writes
        self.loses_flushed = loses_flushed
        self.safe = 0

    def safe_at(self, point: int) -> int:
        """The number of the first `point` writes that are intact after a power loss."""
        flushes = [at for at in range(self.safe, point) if self.writes[at].is_flush]
        kept = len(flushes) - self.loses_flushed
        return flushes[kept - 1] + 1 if kept > 0 else self.safe

    def cut(self, point: int, draw: random.Random, way: str, target: str) -> int:
        """Writes to `target` a possible content of the disk if power is lost after `point` writes.
        Points must be in ascending order. Returns the number of unsafe sectors.

        `way` determines which unsafe sectors are kept: "none", "all", or "some".
        """
        safe = self.safe_at(point)
        with open(self.image, "r+b") as image, open(self.record, "rb") as record:
            for write in self.writes[self.safe : safe]:
                apply(write, record, image)
        self.safe = safe
        copy(self.image, target)
        unsafe = self.writes[safe:point]
        with open(target, "r+b") as image, open(self.record, "rb") as record:
            for write in unsafe:
                if way == "all":
                    apply(write, record, image)
                elif way == "some":
                    apply(write, record, image, lambda: draw.random() < 0.5)
        return sum(write.sectors for write in unsafe)


def copy(source: str, target: str):
    """Copies an image, except for unwritten space."""
    subprocess.run(["cp", "--sparse=always", source, target], check=True)


def apply(write, record, image, keeps=None):
    """Writes the content of `write` to an image: all of it, or the sectors that `keeps` selects.

    A quarter of the writes are kept and a quarter lost; for the others, each sector is drawn.
    """
    if write.flags & DISCARD or write.sectors == 0:
        return
    record.seek(write.content_at)
    content = record.read(write.sectors * SECTOR)
    if keeps is None:
        image.seek(write.sector * SECTOR)
        image.write(content)
        return
    is_whole = keeps()
    keeps_all = keeps()
    for place in range(write.sectors):
        if keeps_all if is_whole else keeps():
            image.seek((write.sector + place) * SECTOR)
            image.write(content[place * SECTOR : (place + 1) * SECTOR])
