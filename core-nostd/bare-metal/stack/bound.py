"""The greatest depth of the stack below an entry, over all paths through the call graph."""

from fnmatch import fnmatchcase

from flow import Walk
from image import Unbounded


class Bounds:
    """The bounds of one image. `named` maps patterns of functions to patterns of targets, for those
    of their calls whose targets are not known from the instructions."""

    def __init__(self, image, machine, named):
        self.image = image
        self.machine = machine
        self.named = named
        self.used = set()
        self.frames = {}
        self.totals = {}
        self.deepest = {}
        self.path = []

    def entries(self, pattern):
        """The functions that match a pattern."""
        return [
            function for function in self.image.functions if fnmatchcase(function.name, pattern)
        ]

    def frame(self, function):
        """A function's own frame."""
        if function.start not in self.frames:
            jumps = self.named.get(function.name) == ["itself"]
            self.frames[function.start] = Walk(self.machine, function, jumps).run()
        return self.frames[function.start]

    def callees(self, function, call):
        """The functions that a call may reach."""
        if call.callee is not None:
            found = self.image.function_at(call.callee)
            if found is None or found.start != call.callee:
                raise Unbounded(
                    f"{function.name} at {call.address:#x}: calls {call.callee:#x}, no function")
            return [found]
        for pattern, targets in self.named.items():
            if not fnmatchcase(function.name, pattern):
                continue
            self.used.add(pattern)
            if targets == ["itself"]:
                return []
            found = [entry for target in targets for entry in self.entries(target)]
            if not found:
                raise Unbounded(f"{function.name}: no function is named {' or '.join(targets)}")
            return found
        raise Unbounded(f"{function.name} at {call.address:#x}: an indirect call, not named")

    def total(self, function):
        """The most bytes of stack that a function and all its callees use."""
        if function.start in self.totals:
            return self.totals[function.start]
        if function in self.path:
            names = [entry.name for entry in self.path[self.path.index(function):]]
            raise Unbounded("recursion: " + " -> ".join([*names, function.name]))
        self.path.append(function)
        frame = self.frame(function)
        total, deepest = frame.depth, None
        for call in frame.calls:
            for callee in self.callees(function, call):
                below = call.depth + self.total(callee)
                if below > total:
                    total, deepest = below, callee
        self.path.pop()
        self.totals[function.start] = total
        self.deepest[function.start] = deepest
        return total

    def way(self, function):
        """The functions on the deepest path, with the bytes below each."""
        while function is not None:
            yield function.name, self.totals[function.start]
            function = self.deepest[function.start]
