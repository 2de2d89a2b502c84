"""Turns of phrase and types of one name are found in made-up texts."""

import unittest

from loading import load

words = load(".ci/words")


class Words(unittest.TestCase):
    def test_turns_of_phrase_are_found(self):
        source = (
            "/// What the own row says once a message.\nfn a() {}\n#[test]\nfn what_is_told() {}\n"
            "/// Returns the row.\nfn b() { panic!() }\n"
        )
        document = "A member goes on.\n\n```\nIt goes on.\n```\n- Whoever waits\n"
        found = words.places([("a.rs", source), ("b.md", document)])
        seen = sorted(place.split(": ")[1] for some in found.values() for place in some)
        self.assertEqual(seen, ["What, Whose, Who", "go on", "once a message", "the own",
                                "told in a name", "what, who in a name", "whoever"])

    def test_fourth_type_of_one_name_is_found(self):
        found = words.types_of_one_name([
            ("a.rs", "struct Row;\nmod b {\n    pub(super) type Row = u8;\n}\nenum Rows {}\n"),
            ("b.rs",
             "pub trait Row {\n    type Row;\n}\nstruct Rows;\nstruct Rows_;\n// struct Row\n"),
            ("c.rs", "pub unsafe trait Row<T> {}\nunion Rows {}\n"),
            ("core-nostd/c/d.rs", "struct Rows;\n"),
        ])
        self.assertEqual(
            found, {"Row": ["a.rs:1: Row", "a.rs:3: Row", "b.rs:1: Row", "c.rs:1: Row"]})
