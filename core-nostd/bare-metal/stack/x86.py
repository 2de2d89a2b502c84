"""The effects of x86-64 instructions on the stack pointer and on registers with known numbers."""

import re

from flow import NEXT, Effect
from image import Unbounded

return_address = 8
STACK = "rsp"
# Registers that a call may change (System V ABI).
CALL_CHANGES = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
PLAIN = re.compile(r"(mov|lea|add|sub|and|or|xor|cmp|test|push|pop|set|cmov|shl|shr|sar|sal|rol|"
                   r"ror|inc|dec|neg|not|bt|nop|imul|adc|sbb|bswap|shld|shrd|p|v|u|tzcnt|bsf|bsr|"
                   r"lzcnt|popcnt)")
ONE_OPERAND = re.compile(r"(i?mul|i?div)[bwlq]$")
PREFIXES = ("rep", "repe", "repne", "lock")


def whole(name):
    """The 64-bit register that a name is a part of."""
    name = name.lstrip("%")
    if match := re.match(r"(r\d+)[bwd]?$", name):
        return match[1]
    if match := re.match(r"[re]?(ax|bx|cx|dx|si|di|bp|sp)$", name):
        return "r" + match[1]
    if match := re.match(r"([abcd])[lh]$", name):
        return "r" + match[1] + "x"
    if match := re.match(r"(si|di|bp|sp)l$", name):
        return "r" + match[1]
    return None


def number(text):
    """An immediate operand."""
    return int(text.lstrip("$"), 0)


def is_padding(instruction):
    """Whether the instruction only fills the space between functions or blocks."""
    return instruction.mnemonic.startswith(("nop", "int3")) or instruction.mnemonic == "data16"


class Machine:
    """The instructions, over one image."""

    return_address = return_address
    is_padding = staticmethod(is_padding)

    def __init__(self, image):
        self.image = image

    def memory(self, text, instruction, state):
        """The constant address of a memory operand."""
        match = re.match(r"(-?\w*)(?:\((%\w+)?\))?$", text)
        if not match:
            return None
        displacement = int(match[1] or "0", 0)
        if match[2] is None:
            return displacement & (1 << 64) - 1
        if match[2] == "%rip":
            return instruction.end + displacement
        base = state.number(whole(match[2]))
        return None if base is None else base + displacement

    def value(self, instruction, state):
        """The known value that a move or `lea` puts into its register."""
        mnemonic, source = instruction.mnemonic, instruction.operands[0]
        if mnemonic in ("leaq", "leal"):
            match = re.match(r"(-?\w*)\((%\w+)\)$", source)
            if match and mnemonic == "leaq":
                depth = state.depth if whole(match[2]) == STACK else state.stack(whole(match[2]))
                if depth is not None:
                    return "stack", depth - int(match[1] or "0", 0)
            address = self.memory(source, instruction, state)
            return None if address is None else ("number", address)
        if mnemonic not in ("movq", "movabsq", "movl"):
            return None
        if source.startswith("$"):
            return "number", number(source) & (1 << (32 if mnemonic == "movl" else 64)) - 1
        if source.startswith("%") and mnemonic == "movq":
            if whole(source) == STACK:
                return "stack", state.depth
            return state.registers.get(whole(source))
        address = None if mnemonic == "movl" else self.memory(source, instruction, state)
        content = None if address is None else self.image.constant(address)
        return None if content is None else ("number", content)

    def effect(self, instruction, state, function):
        """Changes the state as the instruction does, and returns where it leads."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        compared = state.registers.get("compared")
        if not mnemonic.startswith("mov"):
            state.registers.pop("compared", None)
        if mnemonic in ("callq", "jmpq", "jmp") or mnemonic.startswith("j"):
            return self.branch(instruction, state, function, compared)
        if mnemonic.startswith("ret"):
            return Effect("return")
        if mnemonic in ("ud2", "hlt", "iretq"):
            return Effect("stop")
        if mnemonic == "pushq":
            state.depth += 8
        elif mnemonic == "popq":
            state.depth -= 8
            state.registers.pop(whole(operands[0]), None)
        elif operands and operands[-1] == "%rsp":
            self.move_stack(instruction, state)
        else:
            self.change_registers(instruction, state)
        return NEXT

    def move_stack(self, instruction, state):
        """An instruction whose target is the stack pointer."""
        mnemonic, source = instruction.mnemonic, instruction.operands[0]
        if mnemonic == "cmpq":
            if state.stack(whole(source)) is not None:
                state.registers["compared"] = ("stack", state.stack(whole(source)))
        elif mnemonic in ("subq", "addq") and source.startswith("$"):
            state.depth += number(source) * (1 if mnemonic == "subq" else -1)
        elif mnemonic == "andq" and source.startswith("$") and number(source) < 0:
            # As many bytes as alignment can take.
            state.depth += -number(source) - 1
        else:
            kind, depth = self.value(instruction, state) or (None, 0)
            if kind != "stack":
                raise Unbounded(f"{instruction.address:#x}: the stack pointer becomes unknown")
            state.depth = depth

    def change_registers(self, instruction, state):
        """Forgets the values that an instruction overwrites, and records new known values."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        registers = [whole(text) for text in operands if text.startswith("%")]
        changed = registers[-1:] if operands and operands[-1].startswith("%") else []
        known = None
        if mnemonic.startswith(("cmp", "test")) and not mnemonic.startswith("cmpxchg"):
            changed = []
        elif len(operands) == 2 and changed and mnemonic.startswith(("mov", "lea")):
            known = self.value(instruction, state)
        elif mnemonic in ("addq", "subq") and operands[0].startswith("$") and changed:
            kind, depth = state.registers.get(changed[0], (None, 0))
            amount = number(operands[0]) * (1 if mnemonic == "subq" else -1)
            known = ("stack", depth + amount) if kind == "stack" else None
        elif ONE_OPERAND.match(mnemonic) and len(operands) == 1:
            changed = ["rax", "rdx"]
        elif not PLAIN.match(mnemonic) or mnemonic in PREFIXES or "cmpxchg" in mnemonic:
            changed = [*registers, "rax", "rcx", "rdx", "rsi", "rdi", "rbx"]
        for register in changed:
            state.registers.pop(register, None)
        if known and changed[0]:
            state.registers[changed[0]] = known

    def branch(self, instruction, state, function, compared):
        """Calls and jumps."""
        mnemonic, operand = instruction.mnemonic, instruction.operands[0]
        target = self.target(operand, instruction, state)
        if mnemonic == "callq":
            for register in CALL_CHANGES:
                state.registers.pop(register, None)
            return Effect("call", target)
        if mnemonic in ("jmpq", "jmp"):
            if operand.startswith("*") and self.is_table(operand, function):
                return Effect("table")
            return Effect("jump", target)
        return Effect("jump", target, True, compared[1] if compared else None)

    def target(self, operand, instruction, state):
        """The target of a call or a jump, if it is known."""
        if not operand.startswith("*"):
            return int(operand, 0)
        operand = operand[1:]
        if operand.startswith("%"):
            return state.number(whole(operand))
        address = self.memory(operand, instruction, state)
        return None if address is None else self.image.constant(address)

    def is_table(self, operand, function):
        """Whether a jump uses an entry of a constant table of addresses in its function."""
        match = re.match(r"\*(\w+)\(,%\w+,8\)$", operand)
        entry = self.image.constant(int(match[1], 0)) if match else None
        return entry is not None and function.holds(entry)
