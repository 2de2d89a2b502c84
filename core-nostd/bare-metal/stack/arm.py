"""The effects of the two ARM machines' instructions on the stack pointer and on registers with
known numbers."""

import re

from flow import NEXT, Effect
from image import Unbounded

CONDITIONS = "eq ne hs cs lo cc mi pl vs vc hi ls ge lt gt le".split()
# These change no register, except a base register that they advance.
READERS = re.compile(r"(st|cmp|cmn|tst|teq|ccmp|fcmp|vst|cb|tb|dmb|dsb|isb|clrex|nop|prfm|pld|svc|"
                     r"hlt|v?push|msr|mcr)")
# These change one register: the first operand.
WRITERS = re.compile(r"(mov|mvn|ld[ru]|add|sub|adc|sbc|rsb|rsc|and|orr|orn|eor|eon|bic|bf|ubf|"
                     r"sbf|[us]xt|mul|mla|mls|madd|msub|[us]div|clz|rbit|rev|csel|cset|csin|cinc|"
                     r"cneg|ls[lr]|asr|ror|rrx|extr|umulh|smulh|adr|mrs|mrc|neg|ngc|[us]mull?h?$)")


def number(text):
    """An immediate operand."""
    return int(text.lstrip("#"), 0)


def is_number(text):
    """Whether an operand is an immediate one."""
    return text.startswith("#")


def registers_of(text):
    """The registers that an operand names."""
    return [whole(name) for name in re.findall(r"[a-z]+\d*", text)]


def whole(name):
    """The register that a name is a part of."""
    if match := re.match(r"w(\d+)$", name):
        return "x" + match[1]
    return {"wsp": "sp", "fp": "x29", "r13": "sp", "r14": "lr", "r15": "pc"}.get(name, name)


class Machine:
    """The common parts of both machines."""

    return_address = 0
    width = 64

    def __init__(self, image):
        self.image = image

    @staticmethod
    def is_padding(instruction):
        """Whether the instruction only fills space."""
        return instruction.mnemonic in ("nop", "udf", "trap")

    def known(self, register, state):
        """The known content of a register, the stack pointer included."""
        return ("stack", state.depth) if register == "sp" else state.registers.get(register)

    def assign(self, register, value, instruction, state):
        """Assigns a value, which may be unknown, to a register."""
        if register == "sp":
            if not value or value[0] != "stack":
                raise Unbounded(f"{instruction.address:#x}: the stack pointer becomes unknown")
            state.depth = value[1]
        elif value:
            state.registers[register] = value
        else:
            state.registers.pop(register, None)

    def sum(self, instruction, state, sign):
        """The sum of a register and a number, or of two registers."""
        operands = instruction.operands[1:]
        if len(operands) == 1 or is_number(operands[0]):
            operands = [instruction.operands[0], *operands]
        known = self.known(whole(operands[0]), state)
        if whole(operands[0]) == "pc":
            known = ("number", instruction.address + 8)
        if not is_number(operands[1]):
            other = state.number(whole(operands[1]))
            if known and known[0] == "stack" and other is not None and len(operands) == 2:
                return "stack", known[1] - sign * other
            return ("table", known[1]) if known and known[0] == "number" else None
        amount = number(operands[1])
        if len(operands) == 3:
            if not operands[2].startswith("lsl #"):
                return None
            amount <<= number(operands[2].split()[1])
        if known is None:
            return None
        kind, value = known
        if kind == "stack":
            return kind, value - sign * amount
        return (kind, value + sign * amount) if kind == "number" else None

    def compared(self, instruction, state):
        """The depth of the register that the stack pointer is compared with."""
        operands = [whole(text) for text in instruction.operands[:2]]
        if instruction.mnemonic == "cmp" and operands[0] == "sp":
            depth = state.stack(operands[1])
            if depth is not None:
                state.registers["compared"] = ("stack", depth)

    def load(self, operand, instruction, state):
        """The result of a load from constant memory."""
        match = re.match(r"\[(\w+)(?:, #(-?\w+))?\]$", operand)
        if match and match[1] == "pc":
            base = instruction.address + 8
        elif match:
            base = state.number(whole(match[1]))
        else:
            return None
        if base is None:
            return None
        content = self.image.constant(base + int(match[2] or "0", 0))
        return None if content is None else ("number", content)

    def write_back(self, instruction, state):
        """Updates a base register that moves before or after the access."""
        operands = instruction.operands
        for at, operand in enumerate(operands):
            base = re.match(r"\[(\w+)", operand)
            if not base:
                continue
            amount = None
            if operand.endswith("!"):
                amount = re.match(r"\[\w+, #(-?\w+)\]!$", operand)
                amount = int(amount[1], 0) if amount else False
            elif operand.endswith("]") and at + 1 < len(operands):
                following = operands[at + 1]
                amount = number(following) if is_number(following) else False
            if amount is None:
                continue
            register = whole(base[1])
            known = self.known(register, state)
            moved = None
            if known and amount is not False:
                moved = (known[0], known[1] + (-amount if known[0] == "stack" else amount))
            self.assign(register, moved, instruction, state)

    def probe(self, instruction, target, compared, maybe):
        """A jump, or the end of the loop that touches a large frame page by page."""
        return Effect("jump", target, maybe, compared[1] if compared and maybe else None)


class Aarch64(Machine):
    """The 64-bit machine."""

    CALL_CHANGES = [f"x{at}" for at in range(19)] + ["x30"]

    def effect(self, instruction, state, function):
        """Changes the state as the instruction does, and returns where it leads."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        compared = state.registers.get("compared")
        if not mnemonic.startswith("st"):
            state.registers.pop("compared", None)
        if mnemonic in ("bl", "blr"):
            target = self.target(operands[0], state)
            for register in self.CALL_CHANGES:
                state.registers.pop(register, None)
            return Effect("call", target)
        if mnemonic == "b" or mnemonic.startswith("b."):
            return self.probe(instruction, int(operands[0], 0), compared, mnemonic != "b")
        if mnemonic in ("cbz", "cbnz", "tbz", "tbnz"):
            return Effect("jump", int(operands[-1], 0), True)
        if mnemonic == "br":
            if state.registers.get(operands[0], (None,))[0] == "table":
                return Effect("table")
            return Effect("jump", self.target(operands[0], state))
        if mnemonic in ("ret", "eret"):
            return Effect("return")
        if mnemonic in ("brk", "udf"):
            return Effect("stop")
        self.change(instruction, state)
        return NEXT

    @staticmethod
    def target(operand, state):
        """The target of a call or a jump, if it is known."""
        return int(operand, 0) if operand.startswith("0x") else state.number(operand)

    def change(self, instruction, state):
        """Any other instruction."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        self.write_back(instruction, state)
        self.compared(instruction, state)
        if not operands or READERS.match(mnemonic) and not re.match(r"stl?x", mnemonic):
            return
        first = whole(operands[0])
        value = None
        if mnemonic in ("add", "sub"):
            value = self.sum(instruction, state, 1 if mnemonic == "add" else -1)
        elif mnemonic == "adr":
            value = ("number", instruction.address + number(operands[1]))
        elif mnemonic == "adrp":
            value = ("number", int(operands[1], 0))
        elif mnemonic == "mov" and is_number(operands[1]):
            value = ("number", number(operands[1]))
        elif mnemonic == "mov":
            value = self.known(whole(operands[1]), state)
        elif mnemonic == "and" and is_number(operands[2]):
            value = self.aligned(operands, state)
        elif mnemonic == "ldr" and len(operands) == 2 and operands[0].startswith("x"):
            value = self.load(operands[1], instruction, state)
        if not WRITERS.match(mnemonic) or mnemonic.startswith(("ldp", "ldx", "ldax")):
            for operand in operands:
                for register in registers_of(operand) if operand[0] != "[" else []:
                    state.registers.pop(register, None)
        self.assign(first, value, instruction, state)

    def aligned(self, operands, state):
        """The stack pointer rounded down."""
        known = self.known(whole(operands[1]), state)
        align = -number(operands[2]) & (1 << 64) - 1
        return ("stack", known[1] + align - 1) if known and known[0] == "stack" else None


class Armv7a(Machine):
    """The 32-bit machine, in ARM mode."""

    CALL_CHANGES = ["r0", "r1", "r2", "r3", "r12", "lr"]

    def effect(self, instruction, state, function):
        """Changes the state as the instruction does, and returns where it leads."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        compared = state.registers.get("compared")
        if not mnemonic.startswith("st"):
            state.registers.pop("compared", None)
        for base in ("b", "bl", "blx", "bx"):
            rest = mnemonic[len(base):] if mnemonic.startswith(base) else None
            if rest == "" or rest in CONDITIONS:
                return self.branch(base, rest != "", instruction, state, compared)
        maybe = mnemonic[-2:] in CONDITIONS and mnemonic[:-2] not in ("", "t", "mo")
        plain = mnemonic[:-2] if maybe else mnemonic
        if plain in ("udf", "trap"):
            return Effect("stop")
        if operands and (operands[0] == "pc" or "pc" in registers_of(operands[-1])):
            if leaves := self.writes_pc(plain, maybe, instruction, state, function):
                return leaves
        before = state.copy()
        self.change(plain, instruction, state)
        if maybe:
            if before.depth != state.depth:
                raise Unbounded(f"{instruction.address:#x}: the stack pointer may move or not")
            state.registers = {
                register: value for register, value in state.registers.items()
                if before.registers.get(register) == value
            }
        return NEXT

    def branch(self, base, maybe, instruction, state, compared):
        """Calls and jumps."""
        operand = instruction.operands[0]
        if base == "bx" and operand == "lr":
            return Effect("return", maybe=maybe)
        is_place = operand.startswith("0x")
        target = int(operand, 0) if is_place else state.number(whole(operand))
        if base in ("bl", "blx"):
            for register in self.CALL_CHANGES:
                state.registers.pop(register, None)
            return Effect("call", target)
        return self.probe(instruction, target, compared, maybe)

    def writes_pc(self, plain, maybe, instruction, state, function):
        """An instruction other than a branch that writes the program counter."""
        operands = instruction.operands
        if plain in ("pop", "ldm") and "pc" in registers_of(operands[-1]):
            return Effect("return", maybe=maybe)
        if operands[0] != "pc" or plain not in ("ldr", "mov", "add"):
            return None
        if plain == "ldr" and re.match(r"\[sp\]", operands[1]):
            return Effect("return", maybe=maybe)
        if plain == "mov" and operands[1] == "lr":
            return Effect("return", maybe=maybe)
        match = re.match(r"\[(\w+), (\w+), lsl #2\]$", operands[1])
        base = state.number(whole(match[1])) if match else None
        entry = None if base is None else self.image.constant(base)
        if entry is None or not function.holds(entry):
            return Effect("jump", None, maybe)
        return Effect("table", maybe=maybe)

    def change(self, plain, instruction, state):
        """Any other instruction."""
        operands = instruction.operands
        if plain in ("push", "pop", "vpush", "vpop"):
            registers = registers_of(operands[0])
            bytes_of_all = len(registers) * (8 if plain[0] == "v" else 4)
            state.depth += bytes_of_all if plain.endswith("push") else -bytes_of_all
            if plain == "pop":
                for register in registers:
                    state.registers.pop(register, None)
            return
        if plain.startswith(("ldm", "stm", "vldm", "vstm")):
            self.several(plain, instruction, state)
            return
        self.write_back(instruction, state)
        self.compared(instruction, state)
        if not operands or READERS.match(plain) and not plain.startswith(("strex", "stlex")):
            return
        self.assign_result(plain, instruction, state)

    def several(self, plain, instruction, state):
        """A list of registers from or to memory."""
        base, listed = instruction.operands
        if base.startswith("sp") and base.endswith("!"):
            raise Unbounded(f"{instruction.address:#x}: {plain} moves the stack pointer")
        for register in [whole(base.rstrip("!")), *registers_of(listed)]:
            state.registers.pop(register, None)

    def assign_result(self, plain, instruction, state):
        """An instruction that writes its first operand."""
        operands = instruction.operands
        first = whole(operands[0])
        value = None
        if plain in ("add", "sub"):
            value = self.sum(instruction, state, 1 if plain == "add" else -1)
        elif plain in ("mov", "movw") and is_number(operands[1]):
            value = ("number", number(operands[1]) & 0xFFFFFFFF)
        elif plain == "movt":
            low = state.number(first)
            value = None if low is None else ("number", low & 0xFFFF | number(operands[1]) << 16)
        elif plain == "mov":
            value = self.known(whole(operands[1]), state)
        elif plain == "bfc" and first == "sp" and number(operands[1]) == 0:
            value = ("stack", state.depth + (1 << number(operands[2])) - 1)
        elif plain == "ldr" and len(operands) == 2:
            value = self.load(operands[1], instruction, state)
        if not WRITERS.match(plain) or plain in ("ldrd", "ldrexd", "strexd", "strex") or (
                plain.startswith(("umull", "smull", "umlal", "smlal", "ldrex", "ldaex"))):
            for operand in operands:
                for register in registers_of(operand) if operand[0] != "[" else []:
                    state.registers.pop(register, None)
        if first.startswith(("r", "sp", "lr")):
            self.assign(first, value, instruction, state)
