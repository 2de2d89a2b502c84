"""A linked image: its functions, their instructions, and the memory that never changes."""

import re
import struct
import subprocess
from bisect import bisect_right
from dataclasses import dataclass, field

LOADED, WRITABLE, SYMBOLS, FUNCTION = 1, 2, 2, 2
DATA = (".word", ".short", ".byte", ".long", ".inst", "<unknown>")


class Unbounded(Exception):
    """The reason why there is no bound."""


@dataclass
class Instruction:
    """One instruction as the disassembler prints it, without comments."""

    address: int
    end: int
    mnemonic: str
    operands: list


@dataclass
class Function:
    """A function of the image. Names that share an address are one function."""

    name: str
    start: int
    end: int
    code: dict = field(default_factory=dict)

    def holds(self, address):
        """Whether an address is in the function."""
        return self.start <= address < self.end


def split(text):
    """Splits operands at the commas outside brackets."""
    operands, depth, last = [], 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            operands.append(text[last:at].strip())
            last = at + 1
    rest = text[last:].strip()
    return [*operands, rest] if rest else operands


class Image:
    """A little-endian ELF file of 32 or 64 bits."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:4] != b"\x7fELF" or self.bytes[5] != 1:
            raise Unbounded(f"{path} is not a little-endian ELF file")
        self.is_wide = self.bytes[4] == 2
        self.word = 8 if self.is_wide else 4
        self.sections = self._sections()
        self.segments = self._segments()
        self.functions = self._functions()
        self.starts = [function.start for function in self.functions]
        self._disassemble()

    def _sections(self):
        head = "<QQQ" if self.is_wide else "<III"
        _, _, table = struct.unpack_from(head, self.bytes, 24)
        size, count = struct.unpack_from("<HH", self.bytes, 58 if self.is_wide else 46)
        entry = "<IIQQQQII" if self.is_wide else "<IIIIIIII"
        return [struct.unpack_from(entry, self.bytes, table + at * size) for at in range(count)]

    def _segments(self):
        """Address, file offset and length of the parts that are loaded and not writable."""
        head = "<QQQ" if self.is_wide else "<III"
        _, table, _ = struct.unpack_from(head, self.bytes, 24)
        size, count = struct.unpack_from("<HH", self.bytes, 54 if self.is_wide else 42)
        found = []
        for at in range(count):
            if self.is_wide:
                kind, flags, offset, start, _, length, _, _ = struct.unpack_from(
                    "<IIQQQQQQ", self.bytes, table + at * size)
            else:
                kind, offset, start, _, length, _, flags, _ = struct.unpack_from(
                    "<IIIIIIII", self.bytes, table + at * size)
            if kind == LOADED and not flags & WRITABLE:
                found.append((start, offset, length))
        return found

    def _functions(self):
        symbols = next(section for section in self.sections if section[1] == SYMBOLS)
        names = self.sections[symbols[6]]
        entry = "<IBBHQQ" if self.is_wide else "<IIIBBH"
        found = {}
        for values in struct.iter_unpack(entry, self._content(symbols)):
            if self.is_wide:
                name, info, _, _, start, size = values
            else:
                name, start, size, info, _, _ = values
            if info & 15 == FUNCTION and size > 0:
                at = names[4] + name
                text = self.bytes[at:self.bytes.index(b"\0", at)].decode()
                found.setdefault(start & ~1, (size, text))
        plain = plain_names([text for _, text in found.values()])
        return [
            Function(name, start, start + size)
            for (start, (size, _)), name in sorted(zip(found.items(), plain))
        ]

    def _content(self, section):
        return self.bytes[section[4]:section[4] + section[5]]

    def function_at(self, address):
        """The function that contains an address."""
        at = bisect_right(self.starts, address) - 1
        if at >= 0 and self.functions[at].holds(address):
            return self.functions[at]
        return None

    def constant(self, address):
        """A word of memory that is loaded from the file and cannot be written."""
        for start, offset, size in self.segments:
            if start <= address and address + self.word <= start + size:
                form = "<Q" if self.is_wide else "<I"
                return struct.unpack_from(form, self.bytes, offset + address - start)[0]
        return None

    def _disassemble(self):
        listing = subprocess.run(["llvm-objdump", "-d", "--no-show-raw-insn", self.path],
                                 check=True, text=True, stdout=subprocess.PIPE).stdout
        before = None
        for line in listing.splitlines():
            match = re.match(r" *([0-9a-f]+):\s+(.*)$", line)
            if not match:
                continue
            address, text = int(match[1], 16), match[2]
            if before:
                before.end = address
            before = None
            function = self.function_at(address)
            if function is None or any(mark in text for mark in DATA):
                continue
            text = re.sub(r"\s*(<.*|@ .*|// .*|# .*)$", "", text)
            mnemonic, _, operands = text.partition("\t")
            before = Instruction(address, function.end, mnemonic.strip(), split(operands))
            function.code[address] = before


def plain_names(names):
    """Readable names, without the compiler's hashes."""
    text = subprocess.run(["c++filt"], input="\n".join(names), check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    return [re.sub(r"::h[0-9a-f]{16}$|\[[0-9a-f]{6,16}\]", "", name) for name in text]
