"""Puts the mutants of a Rust file into the file, each behind a switch that is set at run time.

A single build therefore contains all mutants. `switched` returns the new text of a file. It omits
some mutants, which the caller has to build one by one: those of code that the compiler evaluates,
because the switch does not exist then, and those of a chain with `let`, whose parts are not
expressions.

An expression `a < b` whose mutants 7 and 8 have other operators becomes

    (if crate::mutant_is(7) {/*<7*/a <= b/*>7*/} else if crate::mutant_is(8) {...} else {a < b})

where each mutant is between marks, by which `culprit` finds a mutant that does not compile. A
function whose result is replaced returns it at its beginning; a match arm has the switch in its
guard.
"""

import importlib
import os
import re
import subprocess
import sys

PARSER = ("tree-sitter==0.26.1", "tree-sitter-rust==0.24.2")
SWITCH = "crate::mutant_is"
# Appended to the crate's root. The number is read once, because the core has no environment.
ROOT_BEHIND = '''
/// Whether this mutant is the one that is tried. None is while the compiler computes.
#[inline(always)]
pub const fn mutant_is(number: u32) -> bool {
    core::intrinsics::const_eval_select((number,), mutant_never, mutant_now)
}
const fn mutant_never(_: u32) -> bool {
    false
}
#[inline(always)]
fn mutant_now(number: u32) -> bool {
    let tried = MUTANT.load(core::sync::atomic::Ordering::Relaxed);
    tried == number || tried == u32::MAX && mutant_read() == number
}
static MUTANT: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(u32::MAX);
#[cold]
#[inline(never)]
fn mutant_read() -> u32 {
    unsafe extern "C" {
        fn getenv(name: *const u8) -> *const u8;
    }
    let (mut read, mut at) = (0, unsafe { getenv(c"TRAMONTANE_MUTANT".as_ptr().cast()) });
    while !at.is_null() && unsafe { *at } != 0 {
        read = read * 10 + u32::from(unsafe { *at } - b'0');
        at = unsafe { at.add(1) };
    }
    MUTANT.store(read, core::sync::atomic::Ordering::Relaxed);
    read
}
'''
ROOT_BEFORE = "#![feature(core_intrinsics, const_eval_select)]\n#![allow(internal_features)]\n"
# Kinds of nodes that the compiler evaluates, where a switch would always be off.
COMPUTED = {"const_item", "static_item", "array_type", "const_block", "enum_variant",
            "const_parameter"}


def parser(folder):
    """A parser of Rust, which is installed below `folder` if it is missing."""
    place = os.path.join(folder, "python")
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        importlib.import_module("tree_sitter_rust")
    except ImportError:
        print(f"installing {' and '.join(PARSER)}", file=sys.stderr)
        quietly = ("--quiet", "--root-user-action=ignore", "--disable-pip-version-check")
        subprocess.run([sys.executable, "-m", "pip", "install", *quietly, "--target", place,
                        *PARSER], check=True)
        importlib.invalidate_caches()
    of, rust = importlib.import_module("tree_sitter"), importlib.import_module("tree_sitter_rust")
    return of.Parser(of.Language(rust.language()))


class Source:
    """A file, its tree, and its switched nodes."""

    def __init__(self, text, parse):
        self.bytes = text.encode()
        self.root = parse.parse(self.bytes).root_node
        lines = text.split("\n")
        self.lines = lines
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line.encode()) + 1)
        self.by_node = {}

    def offset(self, at):
        """The byte at a line and a column, as cargo-mutants counts them."""
        line, column = at["line"] - 1, at["column"] - 1
        return self.starts[line] + len(self.lines[line][:column].encode())

    def text(self, start, end):
        """A piece of the file."""
        return self.bytes[start:end].decode()

    def place(self, mutant):
        """The node to switch for a mutant, if there is one."""
        start, end = self.offset(mutant.span["start"]), self.offset(mutant.span["end"])
        node = self.root.descendant_for_byte_range(start, max(start, end - 1))
        if mutant.genre in ("BinaryOperator", "UnaryOperator"):
            wanted = {"binary_expression", "compound_assignment_expr", "unary_expression"}
            node = node.parent
            # Another operator may take other operands: `a || b && c` for `a && b && c`.
            regroups = binds_otherwise(node, mutant)
            while regroups and node.parent.type == "binary_expression":
                node = node.parent
            return node if node is not None and node.type in wanted else None
        if mutant.genre == "StructField":
            return above(node, {"struct_expression"})
        if mutant.genre == "MatchArm":
            return above(node, {"match_arm"}, start, end)
        if mutant.genre == "MatchArmGuard":
            while node.parent is not None and node.parent.start_byte == start \
                    and node.parent.end_byte == end:
                node = node.parent
            return node if node.parent is not None and node.parent.type == "match_pattern" else None
        return above(node, {"block"}, start, end)

    def add(self, mutant):
        """Switches a mutant if possible; returns whether it was switched."""
        node = self.place(mutant)
        if node is None or is_computed(node):
            return False
        self.by_node.setdefault(node.id, []).append(mutant)
        return True

    def rendered(self, node):
        """The text of a node with its switches."""
        if node.type == "match_pattern" and node.parent.id in self.by_node:
            return self.guarded(node, self.by_node[node.parent.id])
        inner, at = [], node.start_byte
        for child in node.children:
            inner += [self.text(at, child.start_byte), self.rendered(child)]
            at = child.end_byte
        whole = "".join([*inner, self.text(at, node.end_byte)])
        mutants = self.by_node.get(node.id)
        if not mutants or node.type == "match_arm":
            return whole
        if node.type == "block":
            returns = "".join(f"if {SWITCH}({one.number}) {{/*<{one.number}*/return "
                              f"{one.replacement};/*>{one.number}*/}}\n" for one in mutants)
            return "{" + returns + whole[1:]
        arms = "".join(f"if {SWITCH}({one.number}) {{/*<{one.number}*/{self.changed(node, one)}"
                       f"/*>{one.number}*/}} else " for one in mutants)
        switched = f"{arms}{{{whole}}}"
        return switched if node.parent.type == "expression_statement" else f"({switched})"

    def guarded(self, node, mutants):
        """The pattern of a match arm that does not match if it is to be deleted."""
        number = mutants[0].number
        asked = f"!{SWITCH}({number}) /*<{number}*//*>{number}*/"
        condition = node.child_by_field_name("condition")
        if condition is None:
            return f"{self.text(node.start_byte, node.end_byte)} if {asked}"
        before = self.text(node.start_byte, condition.start_byte)
        return f"{before}{asked} && ({self.rendered(condition)})"

    def changed(self, node, mutant):
        """The text of a node with a mutant, without other switches."""
        start, end = self.offset(mutant.span["start"]), self.offset(mutant.span["end"])
        put = f" {mutant.replacement} " if mutant.genre != "StructField" else ""
        before, behind = self.text(node.start_byte, start), self.text(end, node.end_byte)
        if mutant.genre == "StructField":
            behind = re.sub(r"^\s*,", "", behind)
        return before + put + behind


def above(node, kinds, start=None, end=None):
    """The node, or its nearest parent, that has one of these kinds and contains the whole range."""
    while node is not None:
        holds = start is None or node.start_byte <= start and node.end_byte >= end
        if node.type in kinds and holds:
            return node
        node = node.parent
    return None


def binds_otherwise(node, mutant):
    """Whether an operator has a different precedence from a node's operator."""
    if node is None or node.type != "binary_expression" or mutant.genre != "BinaryOperator":
        return False
    operator = node.child_by_field_name("operator").text.decode()
    return not any({operator, mutant.replacement} <= set(level) for level in BINDING)


def is_computed(node):
    """Whether the compiler evaluates a node."""
    while node is not None:
        if node.type in COMPUTED:
            return True
        if node.type == "function_item":
            return False
        node = node.parent
    return False


def is_const(source, mutant):
    """Whether a mutant is in a function that the compiler may also evaluate."""
    node = above(source.place(mutant) or source.root, {"function_item"})
    return node is not None and any(
        child.type == "function_modifiers" and b"const" in child.text for child in node.children)


def switched(text, mutants, parse, is_root):
    """The text with its mutants, and those that cannot be switched."""
    source = Source(text, parse)
    left = [mutant for mutant in mutants if not source.add(mutant)]
    # Text before the first item, such as the documentation, is not among the root's children.
    done = source.text(0, source.root.start_byte) + source.rendered(source.root) \
        + source.text(source.root.end_byte, len(source.bytes))
    if is_root:
        done = ROOT_BEFORE + done + ROOT_BEHIND
    return done, left


def culprit(text, offset):
    """The number of the mutant that a byte of a switched file is in, if it is in one."""
    opened = re.findall(r"/\*([<>])(\d+)\*/", text.encode()[:offset + 1].decode(errors="ignore"))
    return int(opened[-1][1]) if opened and opened[-1][0] == "<" else None


def neighbours(text, offset, parse):
    """The numbers of all mutants in the function that a byte of a switched file is in."""
    data = text.encode()
    node = above(parse.parse(data).root_node.descendant_for_byte_range(offset, offset),
                 {"function_item"})
    inside = data[node.start_byte:node.end_byte].decode() if node is not None else ""
    return {int(number) for number in re.findall(r"/\*<(\d+)\*/", inside)}


# Binary operators, from those that bind their operands least.
BINDING = (("||",), ("&&",), ("==", "!=", "<", ">", "<=", ">="), ("|",), ("^",), ("&",),
           ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
SAMPLE = """
pub fn tried(a: u32) -> u32 {
    let mut more = a + 2;
    if !(a < 3) && more != 7 && a != 8 {
        more -= 1;
        return more;
    }
    match a { 0 => 10, 1 if more > 2 => 20, 2 => 30, _ => Two { one: 3, ..TWO }.one }
}
#[derive(Clone, Copy)]
struct Two { one: u32 }
const TWO: Two = Two { one: 5 };
fn main() {
    println!("{:?}", (0..9).map(tried).collect::<Vec<_>>());
}
"""
# The changed text, its replacement, and the kind of change.
CHANGES = (
    ("+", "*", "BinaryOperator"), ("!", "", "UnaryOperator"), ("<", "<=", "BinaryOperator"),
    ("&&", "||", "BinaryOperator"), ("!=", "==", "BinaryOperator"), ("-=", "+=", "BinaryOperator"),
    ("more > 2", "false", "MatchArmGuard"), ("2 => 30,", "", "MatchArm"),
    ("one: 3,", "", "StructField"))


class Change:
    """A mutant of the sample."""

    def __init__(self, number, text, replacement, genre):
        self.number, self.replacement, self.genre = number, replacement, genre
        start = SAMPLE.index(f" {text}") + 1
        self.changed = SAMPLE[:start] + replacement + SAMPLE[start + len(text):]
        self.span = {"start": self.at(start), "end": self.at(start + len(text))}

    @staticmethod
    def at(offset):
        """A position in the form that cargo-mutants uses."""
        before = SAMPLE[:offset].split("\n")
        return {"line": len(before), "column": len(before[-1]) + 1}


def said(folder, text, number):
    """The output of a program with a mutant."""
    path = os.path.join(folder, "sample")
    with open(path + ".rs", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["rustc", "--edition=2024", "--cap-lints=allow", "-o", path, path + ".rs"],
                   check=True, env=dict(os.environ, RUSTC_BOOTSTRAP="1"))
    return subprocess.run([path], check=True, stdout=subprocess.PIPE,
                          env=dict(os.environ, TRAMONTANE_MUTANT=str(number))).stdout


def self_test(folder, parse):
    """Errors: each change of a sample must have the same effect with and without a switch."""
    changes = [Change(number, *change) for number, change in enumerate(CHANGES, 1)]
    text, left = switched(SAMPLE, changes, parse, True)
    wrong = [f"no switch: {change.replacement}" for change in left]
    alone = {change.number: said(folder, change.changed, 0) for change in changes}
    alone[0] = said(folder, SAMPLE, 0)
    if len(set(alone.values())) != len(alone):
        wrong.append("two changes of the sample do the same")
    return wrong + [f"with switch {number} on, the sample does something else"
                    for number, words in alone.items() if said(folder, text, number) != words]
