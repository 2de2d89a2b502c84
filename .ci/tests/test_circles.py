"""Circles of files in small crates whose circles are known."""

import os
import tempfile
import unittest

from loading import load

circles = load(".ci/circles")

# Its name, its files, and the files of its largest circle.
CRATES = [
    ("a use path", {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B; struct A;",
                    "b.rs": "use super::a::A; struct B;"}, ["a", "b"]),
    ("an inline path", {"lib.rs": "mod a; mod b;", "a.rs": "fn a() { crate::b::b() }",
                        "b.rs": "fn b() { super::a::a() }"}, ["a", "b"]),
    ("a re-export is followed", {"lib.rs": "mod a; pub use a::A;", "a.rs": "mod b; mod c;"
                                 "pub use c::A;", "a/b.rs": "use crate::A;",
                                 "a/c.rs": "use super::b::B; pub struct A;"}, []),
    ("an item of the parent", {"lib.rs": "mod a; pub use a::A; pub struct Top;",
                               "a.rs": "use super::{Top as T}; pub struct A;"}, ["a", "lib"]),
    ("a glob", {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::*; pub fn a(b: B) {}",
                "b.rs": "pub struct B; fn f() { crate::a::a(B) }"}, ["a", "b"]),
    ("a module of a folder", {"lib.rs": "mod a;", "a/mod.rs": "mod b; use self::b::{self, B};"
                              "pub const C: B = b::f();",
                              "a/b.rs": "pub struct B; fn f() { super::C }"}, ["a/b", "a/mod"]),
    ("tests", {"lib.rs": "mod a; mod b;", "a.rs": "pub struct A; #[cfg(test)] mod tests "
               "{ use crate::b::B; } #[cfg(any(test, fuzzing))] pub use crate::b::B;",
               "b.rs": "use crate::a::A; pub struct B;"}, []),
    ("what is not tests", {"lib.rs": "mod a; mod b;", "a.rs": "#[cfg(not(test))] "
                           "use crate::b::B; pub struct A;",
                           "b.rs": "use crate::a::A; pub struct B;"}, ["a", "b"]),
    ("comments and literals", {"lib.rs": "mod a; mod b;", "a.rs": "// crate::b::B\n"
                               "const A: &str = \"{ crate::b::B\"; const Q: char = '\"';",
                               "b.rs": "use crate::a::A; pub struct B;"}, []),
]


class Circles(unittest.TestCase):
    def test_largest_circle_is_found(self):
        for name, files, wanted in CRATES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                for path, text in files.items():
                    os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
                    with open(f"{folder}/{path}", "w", encoding="utf-8") as file:
                        file.write(text)
                found = circles.circles(circles.edges_of([f"{folder}/lib.rs"])) or [[]]
                seen = sorted(os.path.relpath(path, folder)[:-3] for path in found[0])
                self.assertEqual(seen, wanted)
