"""Each kind of gap in the traceability of a small made-up tree is found."""

import unittest

from loading import load

trace = load(".ci/trace")

# A tree without gaps, and the changes to it, each of which makes a gap that must be found.
SOUND = {
    trace.HIGH: "| ORD-1 | One order |\n| ORD-2 | Another |\n",
    trace.EVIDENCE: "| ORD-1 | `core-nostd/src/order.rs`: `Order` | "
              "`core-nostd/tests/order.rs`: `all_agree` |\n"
              "| ORD-2 | `core-nostd/src/other.rs` | `core-nostd/tests/order.rs`: `all_agree` |\n",
    trace.CORE + "other.rs": "//! Another (ORD-2).\n",
    trace.LOW: "| ORD-1.1 | Places count | `Order::{new, place}`, `order::sum`, `Host::now` | |\n",
    trace.API: "pub struct tramontane_core::order::Order\nimpl tramontane_core::order::Order\n"
         "pub const fn tramontane_core::order::Order::new() -> Self\n"
         "impl core::fmt::Debug for tramontane_core::order::Order\n"
         "pub fn tramontane_core::order::Order::fmt(&self)\n",
    trace.CORE + "order.rs": "//! The order (ORD-1).\n"
                       "impl Order {\n    pub const fn new() {}\n    pub fn place() {}\n}\n"
                       "pub trait Host {\n    fn now();\n}\npub fn sum() {}\n"
                       "#[cfg(test)]\nmod tests {\n    // ORD-1.1\n    #[test]\n"
                       "    fn counts() {}\n}\n",
    "core-nostd/tests/order.rs": "/// ORD-1: one order.\n#[test]\nfn all_agree() {}\n"
                                 "fn helper() {}\n",
}
BROKEN = [
    (trace.EVIDENCE, "src/order.rs`", "src/gone.rs`", "there is no core-nostd/src/gone.rs"),
    (trace.EVIDENCE, "`Order`", "`Disorder`", "there is no Disorder in core-nostd/src/order.rs"),
    (trace.EVIDENCE, "all_agree", "nobody_agrees", "there is no test nobody_agrees in"),
    (trace.EVIDENCE, "`all_agree`", "`helper`", "there is no test helper in"),
    (trace.EVIDENCE, "`all_agree`", "`all_...`", "there is no all_... in"),
    (trace.EVIDENCE, "ORD-1 ", "ORD-3 ", "ORD-3 is not a requirement"),
    (trace.EVIDENCE, " `core-nostd/src/order.rs`: `Order` |", "", "ORD-1 has 2 cells instead of 3"),
    (trace.HIGH, "ORD-1 ", "ORD-3 ", "ORD-1 is not a requirement"),
    (trace.HIGH, "| ORD-1 |", "| ORD-3 | x |\n| ORD-1 |", "ORD-3: no test verifies it"),
    (trace.HIGH, "| ORD-1 |", "| ORD-3 | x |\n| ORD-1 |", "ORD-3: no code names it"),
    (trace.HIGH, "| ORD-1 |", "| ORD-1 | x |\n| ORD-1 |", "ORD-1 is listed twice"),
    (trace.HIGH, "| One order |", "|", "ORD-1 has 1 cells instead of 2"),
    (trace.LOW, "ORD-1.1", "ORD-3.1", "ORD-3.1 has no high-level requirement above it"),
    (trace.LOW, "ORD-1.1", "ORD-1.2", "ORD-1.2: no test verifies it"),
    (trace.LOW, "place", "turn",
     "ORD-1.1 names Order::turn, which is no public function"),
    (trace.LOW, "{new, place}", "new", "Order::place has no low-level requirement"),
    (trace.LOW, "`order::sum`, ", "", "sum has no low-level requirement"),
    (trace.LOW, ", `Host::now`", "", "Host::now has no low-level requirement"),
    (trace.CORE + "order.rs", "}\n#[cfg", "}\npub fn more() {}\n#[cfg",
     "more has no low-level requirement"),
    (trace.CORE + "order.rs", "(ORD-1)", "", "it names no requirement"),
    (trace.CORE + "order.rs", "(ORD-1)", "(ORD-7)", "order.rs:1: ORD-7 is not a requirement"),
    (trace.CORE + "order.rs", "// ORD-1.1", "// ORD-1.9", "ORD-1.9 is not a requirement"),
    (trace.CORE + "order.rs", "    // ORD-1.1\n", "", "ORD-1.1: no test verifies it"),
    (trace.CORE + "order.rs", "fn new", "fn knew",
     "Order::new is public, but was not found in the source"),
    (trace.CORE + "order.rs", "(ORD-1)", "(ABC-1)", "ABC-1 is not a requirement"),
    (trace.CORE + "order.rs", "pub fn sum", "pub fn turn() {}\npub fn sum",
     "turn has no low-level requirement"),
    (trace.CORE + "order.rs", "}\npub fn sum",
     "}\nimpl Order {\n    pub fn add() {}\n}\npub fn sum",
     "Order::add has no low-level requirement"),
    (trace.EVIDENCE, "| ORD-1 |", "| a defect | `core-nostd/tests/order.rs`: `gone` |\n| ORD-1 |",
     "a defect: there is no test gone in"),
    (trace.CORE + "other.rs", "(ORD-2)", "(ORD-1)",
     "ORD-2: core-nostd/src/other.rs does not name it"),
    ("core-nostd/tests/order.rs", "ORD-1:", "ABC-1:", "ABC-1 is not a requirement"),
    ("core-nostd/tests/order.rs", "#[test]\n", "", "ORD-1: no test verifies it"),
]




def gaps(texts):
    return trace.Trace(trace.Tree(texts)).gaps


class Gaps(unittest.TestCase):
    def test_tree_without_gaps_has_none(self):
        self.assertEqual(gaps(dict(SOUND)), [])

    def test_each_kind_of_gap_is_found(self):
        for path, before, after, expected in BROKEN:
            with self.subTest(before=before, after=after):
                self.assertIn(before, SOUND[path])
                found = gaps(SOUND | {path: SOUND[path].replace(before, after, 1)})
                self.assertTrue(any(expected in gap for gap in found), found)

    def test_matrix_names_code_tests_and_functions(self):
        matrix = "\n".join(trace.matrix(trace.Trace(trace.Tree(dict(SOUND)))))
        for row in (
            "| ORD-1 | `core-nostd/src/order.rs` | `core-nostd/tests/order.rs`: `all_agree` |",
            "`core-nostd/src/order.rs`: `counts` |", "`Order::new` ORD-1.1"
        ):
            self.assertIn(row, matrix)
