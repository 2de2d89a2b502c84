"""The list of surviving mutants is read and compared correctly."""

import unittest

from loading import load

mutants = load(".ci/mutants")

TEXT = (
    "# Mutants\n#\n"
    "src/a.rs | f | replace | with ^ | changes nothing: the lowest bit is zero\n"
    "src/a.rs | f | replace & with | | not by these tests: a host's\n"
    "src/a.rs | A<'_>::g | replace || with && | no test yet: it waits\n"
)


def made(change, function="f"):
    return mutants.Mutant({
        "name": f"core-nostd/src/a.rs:1:2: {change} in {function}",
        "file": "core-nostd/src/a.rs", "function": {"function_name": function}})


BITS, BACK = made("replace | with ^"), made("replace & with |")
EITHER = made("replace || with &&", "A<'_>::g")


class Mutants(unittest.TestCase):
    def test_listed_mutants_may_survive(self):
        outcomes = [(one, mutants.SURVIVED) for one in (BITS, BACK, EITHER)]
        self.assertEqual(list(mutants.judged(outcomes, mutants.listed(TEXT))), [])

    def test_other_mutants_may_not_survive(self):
        outcomes = [(BITS, mutants.SURVIVED), (BITS, mutants.NOTICED)]
        self.assertEqual(len(list(mutants.judged(outcomes, {}))), 1)

    def test_entry_without_a_mutant_is_found(self):
        self.assertEqual(len(list(mutants.stale([BITS, BACK], mutants.listed(TEXT)))), 1)

    def test_malformed_entries_are_refused(self):
        for bad in ("src/a.rs | f | replace | with ^ | why not", "src/a.rs | f | no test yet: no"):
            with self.subTest(bad), self.assertRaises(mutants.Wrong):
                mutants.listed(bad)

    def test_seed_determines_the_choice(self):
        many = [made(f"replace {at}") for at in range(50)]
        first = mutants.chosen(many, 19, 5)
        self.assertEqual(first, mutants.chosen(many[::-1], 19, 5))
        self.assertNotEqual(first, mutants.chosen(many, 20, 5))
