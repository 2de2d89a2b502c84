"""Each kind of gap in the assurance pages is found in altered pages."""

import os
import unittest

from loading import ROOT, load

claims = load("docs/assurance/claims")

# A page, a text in it and its replacement, and the gap that must be found.
BROKEN = [
    ("hazards.md", "`random_runs_keep", "`random_walks_keep", "there is no test random_walks_keep"),
    ("hazards.md", "`cells-unchecked` |", "`cells-eaten` |",
     "there is no planted fault cells-eaten"),
    ("hazards.md", "(FLT-2)", "(FLT-99)", "FLT-99 is not a requirement"),
    ("hazards.md", ": ASM-5;", ": ASM-99;", "ASM-99 is not an assumption"),
    ("hazards.md", "| HAZ-2 |", "| HAZ-1 |", "HAZ-1: it is listed twice"),
    ("hazards.md", "| `planted-panic`, `planted-overflow` |", "| later |", "no fault is planted"),
    ("hazards.md", "| `core-nostd/bare-metal/run` | `planted-r", "| to be done | `planted-r",
     "HAZ-13: no test verifies it"),
    ("hazards.md", "| recursion; a deep call |", "| |", "HAZ-13: a cell is empty"),
    ("assumptions.md", "`can_guard`", "`may_guard`", "there is no may_guard"),
    ("assumptions.md", "| integrator: the design of the application |", "| the application |",
     "ASM-18: nothing enforces it"),
    ("assumptions.md", "| none: this is a property of the application |", "| |",
     "ASM-18: a cell is empty"),
    ("assumptions.md", "| ASM-2 |", "| ASM-1 |", "ASM-1: it is listed twice"),
    ("objectives.md", "| A-7.7 |", "| A-7.70 |", "not the objectives of the tables"),
    ("objectives.md", "computer | no | applicant", "computer | yes | applicant", "level C: yes"),
    ("objectives.md", "source code | yes | evidence", "source code | yes | done", "is not a state"),
    ("objectives.md", "source code | yes | evidence", "source code | yes | none", "the rows say"),
    ("objectives.md", "| evidence | `core-nostd/src` |", "| evidence | it is there |",
     "A-2.6: it names no evidence"),
    ("objectives.md", "| none | reviews leave no records |", "| none | |",
     "not say what is missing"),
    ("tools.md", "`fixtures/interleaved`, ", "", "fixtures/interleaved is not listed"),
    ("tools.md", "| `proptest` |", "| inputs |", "the crate proptest is not listed"),
    ("plan.md", "`.ci/bounds`", "`.ci/leaps`", "there is no .ci/leaps"),
]


class Gaps(unittest.TestCase):
    def test_each_kind_of_gap_is_found(self):
        os.chdir(ROOT)
        reader = claims.trace.Trace(claims.trace.working_tree())
        reader.gaps = []
        pages = {name: reader.tree.texts[claims.FOLDER + name] for name in claims.PAGES}
        for page, before, after, expected in BROKEN:
            with self.subTest(before=before, after=after):
                self.assertIn(before, pages[page])
                altered = pages | {page: pages[page].replace(before, after, 1)}
                found = claims.Claims(reader, altered).find()
                self.assertTrue(any(expected in gap for gap in found), found)
