"""The depth of the stack at each instruction of a function, and the calls made there.

The depth is counted from the function's entry. Every instruction must have a single depth on all
paths that lead to it. That is checked, and it makes one walk over the instructions sufficient.
"""

from dataclasses import dataclass, field

from image import Unbounded


@dataclass
class State:
    """The knowledge before an instruction. A register that is not listed may hold anything."""

    depth: int = 0
    registers: dict = field(default_factory=dict)

    def copy(self):
        """An independent copy."""
        return State(self.depth, dict(self.registers))

    def keep(self, other):
        """Keeps only the knowledge that another state shares."""
        self.registers = {
            register: value for register, value in self.registers.items()
            if other.registers.get(register) == value
        }

    def stack(self, register):
        """The depth that a register points to."""
        kind, value = self.registers.get(register, (None, None))
        return value if kind == "stack" else None

    def number(self, register):
        """The number that a register holds."""
        kind, value = self.registers.get(register, (None, None))
        return value if kind == "number" else None


@dataclass
class Effect:
    """Where an instruction leads: `next`, `jump`, `call`, `return`, `table` or `stop`."""

    kind: str
    target: int = None
    # The instruction may also do nothing.
    maybe: bool = False
    # The loop that touches a large frame page by page: the depth at its end.
    probed: int = None


NEXT = Effect("next")


@dataclass
class Call:
    """A call, or a jump that replaces one. `callee` is `None` if it is unknown."""

    address: int
    depth: int
    callee: int = None


@dataclass
class Frame:
    """The stack that one function uses itself, and its calls."""

    depth: int = 0
    calls: list = field(default_factory=list)


class Walk:
    """The walk over one function."""

    def __init__(self, machine, function, jumps_within=False):
        self.machine = machine
        # Jumps with an unknown target stay in the function.
        self.jumps_within = jumps_within
        self.function = function
        self.before = {}
        self.waiting = []
        self.frame = Frame()
        # The state at each jump through a table.
        self.tables = {}

    def fail(self, address, why):
        """Ends the walk."""
        raise Unbounded(f"{self.function.name} at {address:#x}: {why}")

    def reach(self, address, state, origin):
        """Records a path that leads to an instruction."""
        if address not in self.function.code:
            self.fail(origin, f"leads to {address:#x}, where there is no instruction of it")
        known = self.before.get(address)
        if known is None:
            self.before[address] = state.copy()
            self.waiting.append(address)
            return
        if known.depth != state.depth:
            self.fail(address, f"the stack is {known.depth} or {state.depth} bytes deep")
        count = len(known.registers)
        known.keep(state)
        if len(known.registers) != count:
            self.waiting.append(address)

    def run(self):
        """Returns the function's frame."""
        self.reach(self.function.start, State(), self.function.start)
        self.settle()
        # Code that follows an end and has not been reached is a target of a `match` table.
        leaders = []
        while self.tables:
            leader = self.unreached()
            if leader is not None:
                leaders.append(leader)
            for address in leaders:
                self.reach(address, self.at_tables(), address)
            if not self.waiting:
                break
            self.settle()
        self.collect()
        return self.frame

    def at_tables(self):
        """The common knowledge at all jumps through tables."""
        states = list(self.tables.values())
        if len({state.depth for state in states}) > 1:
            self.fail(self.function.start, "tables at different depths")
        common = states[0].copy()
        for state in states:
            common.keep(state)
        return common

    def unreached(self):
        """The first instruction that nothing known leads to."""
        for address in self.function.code:
            if address not in self.before and not self.machine.is_padding(
                    self.function.code[address]):
                return address
        return None

    def settle(self):
        """Follows all paths until nothing new is learnt."""
        while self.waiting:
            address = self.waiting.pop()
            self.follow(self.function.code[address], self.before[address].copy())

    def follow(self, instruction, state):
        """Follows one instruction."""
        before = state.copy()
        effect = self.machine.effect(instruction, state, self.function)
        address, end = instruction.address, instruction.end
        if state.depth < 0 and effect.kind != "return":
            self.fail(address, "returns more stack than it took")
        if effect.probed is not None:
            self.leave_probes(instruction, effect, state)
            return
        if effect.kind == "jump" and self.is_inside(effect):
            self.reach(effect.target, state, address)
        if effect.kind == "table" or self.jumps_within and self.is_unknown(effect):
            self.tables[address] = state.copy()
        if effect.kind in ("next", "call"):
            self.reach(end, state, address)
        elif effect.maybe:
            self.reach(end, state if effect.kind == "jump" else before, address)

    def is_inside(self, effect):
        """Whether a jump stays in its function."""
        return effect.target is not None and self.function.holds(effect.target)

    @staticmethod
    def is_unknown(effect):
        """Whether a jump's target is unknown."""
        return effect.kind == "jump" and effect.target is None

    def leave_probes(self, instruction, effect, state):
        """The stack pointer is compared with the end of a large frame, whose pages are touched one
        after another. A backward jump is the loop, and a forward jump is its end. In both cases the
        frame has that depth there."""
        address = instruction.address
        if effect.target <= address:
            state.depth = effect.probed
            self.reach(instruction.end, state, address)
            return
        self.reach(instruction.end, state, address)
        state.depth = effect.probed
        self.reach(effect.target, state, address)

    def collect(self):
        """The deepest depth and all calls, once everything is known."""
        frame = self.frame
        for address, state in sorted(self.before.items()):
            state = state.copy()
            instruction = self.function.code[address]
            effect = self.machine.effect(instruction, state, self.function)
            deepest = max(state.depth, effect.probed or 0)
            frame.depth = max(frame.depth, deepest)
            leaves = effect.kind == "jump" and not self.is_inside(effect)
            if effect.kind == "call" or leaves:
                pushed = self.machine.return_address if effect.kind == "call" else 0
                frame.depth = max(frame.depth, state.depth + pushed)
                frame.calls.append(Call(address, state.depth + pushed, effect.target))
