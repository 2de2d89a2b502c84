"""Each difference between a made-up measurement and the list is found."""

import unittest

from loading import load

coverage = load(".ci/coverage")

SOURCE = ("fn a(b: bool) {\n    if b {\n        c();\n    }\n}\n#[cfg(test)]\nmod tests {\n"
          "    d();\n}")
REPORT = ("SF:/x/core-nostd/src/a.rs\nDA:1,1\nDA:2,1\nDA:3,0\nDA:5,1\nDA:8,0\n"
          "BRDA:2,0,0,0\nBRDA:2,0,1,7\nend_of_record\n")
SOUND = "src/a.rs | a | 1 | 1 | no input: b is false\n"
VARIES = SOUND.replace("no input", "varies")
MORE, LESS = "add a test", "correct"
# Its name, the report, the list, and what each difference says.
CASES = [
    ("as it is", REPORT, SOUND, []),
    ("another line", REPORT.replace("DA:5,1", "DA:5,0"), SOUND, [MORE]),
    ("a line is reached", REPORT.replace("DA:3,0", "DA:3,2"), SOUND, [LESS]),
    ("another branch", REPORT.replace("0,1,7", "0,1,0"), SOUND, [MORE]),
    ("a branch is reached", REPORT.replace("0,0,0", "0,0,4"), SOUND, [LESS]),
    ("not listed", REPORT, "", [MORE, MORE]),
    ("gone", "", SOUND, [LESS, LESS]),
    ("one more and one less", REPORT.replace("0,0,0", "0,0,4").replace("DA:5,1", "DA:5,0"),
     SOUND, [MORE, LESS]),
    ("a line that varies", REPORT.replace("DA:3,0", "DA:3,2"), VARIES, []),
    ("more than varies", REPORT.replace("DA:5,1", "DA:5,0"), VARIES, [MORE]),
    ("a second object reaches it", REPORT + "SF:/x/core-nostd/src/a.rs\nDA:3,1\n", SOUND, [LESS]),
]


def missed(report):
    return coverage.Missed(coverage.reached(report), {"src/a.rs": SOURCE})


class Coverage(unittest.TestCase):
    def test_each_difference_is_found(self):
        for title, report, text, expected in CASES:
            with self.subTest(title):
                found = list(coverage.differences(missed(report), coverage.listed(text)))
                self.assertEqual(len(found), len(expected), found)
                for words, difference in zip(expected, found):
                    self.assertIn(words, difference)

    def test_malformed_entries_are_refused(self):
        for bad in ("src/a.rs | a | 1 | 1 |", "src/a.rs | a | x | 1 | no test yet",
                    "src/a.rs | a | 1 | no test yet", "src/a.rs | a | 1 | 1 | no input:"):
            with self.subTest(bad), self.assertRaises(coverage.Wrong):
                coverage.listed(bad)

    def test_list_stays_the_same_when_it_is_rewritten(self):
        again = coverage.written(missed(REPORT), coverage.listed(SOUND))
        self.assertEqual(again, coverage.HEAD + SOUND)
