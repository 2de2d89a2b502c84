"""The most stack that a partition's calls into the core can use, from the linked image.

    python3 stack MACHINE IMAGE --features all|none [options]

Prints a line for each entry of the file `limits`. Fails if one can use more than its limit or less
than a run used, or if it cannot be bounded because of a recursion, an indirect call that is not
named in the file `indirect`, or a stack pointer that becomes unknown.
"""

import argparse
import os
import sys

import arm
import x86
from bound import Bounds
from image import Image, Unbounded

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINES = {"x86": x86.Machine, "aarch64": arm.Aarch64, "armv7a": arm.Armv7a}
WORKLOAD = "tramontane_bare_workload::entries::"


def lines(name):
    """The lines of a file in this folder, without comments."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        texts = [line.split("#")[0].strip() for line in file]
    return [text for text in texts if text]


def limits(features, machine):
    """The limit of each entry that an image with these features has."""
    column = 2 + list(MACHINES).index(machine)
    rows = [[cell.strip() for cell in line.split("|")] for line in lines("limits")]
    return {row[0]: int(row[column]) for row in rows if row[1] == features}


def named(extra):
    """The functions that have indirect calls, and the targets that each may reach."""
    pairs = [line.split(" -> ", 1) for line in [*lines("indirect"), *extra]]
    return {caller.strip(): [name.strip() for name in targets.split(",")]
            for caller, targets in pairs}


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("image")
    parser.add_argument("--features", default="all", choices=("all", "none"))
    parser.add_argument("--seen", metavar="ENTRY=BYTES", action="append", default=[],
                        help="the stack that an entry used in a run")
    parser.add_argument("--named", metavar="CALLER -> TARGET, ...", action="append", default=[],
                        help="one more line of the file `indirect`")
    parser.add_argument("--way", action="store_true", help="print the deepest path of each entry")
    parser.add_argument("--no-limits", action="store_true", help="only compute")
    return parser.parse_args()


def main():
    """Computes, prints and compares."""
    options = arguments()
    image = Image(options.image)
    machine = MACHINES[options.machine](image)
    bounds = Bounds(image, machine, named(options.named))
    seen = {entry: int(count) for entry, count in (text.split("=") for text in options.seen)}
    failed = False
    for entry, limit in limits(options.features, options.machine).items():
        head = f"{options.machine}: {options.features}: {entry}"
        try:
            functions = bounds.entries(WORKLOAD + entry)
            if not functions:
                raise Unbounded("the image has no such function")
            deepest = max(functions, key=bounds.total)
            total = bounds.total(deepest) + machine.return_address
        except Unbounded as error:
            print(f"{head}: no bound: {error}")
            failed = True
            continue
        wrong = ""
        if total > limit and not options.no_limits:
            wrong = ": more than its limit"
        if total < seen.get(entry, 0):
            wrong = ": less than a run took"
        failed = failed or bool(wrong)
        measured = f", {seen[entry]} in a run" if entry in seen else ""
        print(f"{head}: {total} bytes of stack at most{measured}, limit {limit}{wrong}")
        for name, below in bounds.way(deepest) if options.way else ():
            print(f"    {below:6} {name[:150]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
