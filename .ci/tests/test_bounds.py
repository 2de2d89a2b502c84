"""Loops without a stated bound are found."""

import subprocess
import tempfile
import unittest

from loading import ROOT

LOOPS = r"""for a in b {
// bound: b
for c in b {
// bound:
while d {
'outer: loop {
// bound: e
// and why
'inner: while e {
let f = loop {
// bound: g
let h = 1;
loop {
impl A for B {
fn i(j: impl for<'k> L) {
#[cfg(test)]
mod tests {
loop {
"""


class Bounds(unittest.TestCase):
    def test_loops_without_a_bound_are_found(self):
        with tempfile.NamedTemporaryFile("w", suffix=".rs") as file:
            file.write(LOOPS)
            file.flush()
            done = subprocess.run([f"{ROOT}/.ci/bounds", file.name], stdout=subprocess.PIPE,
                                  text=True, check=False)
        lines = [int(line.split(":")[1]) for line in done.stdout.splitlines()[1:]]
        self.assertEqual((done.returncode, lines), (1, [1, 5, 6, 10, 13]))
