"""The examples in the comments of `lines` and of the reader of Rust."""

import doctest

from loading import load


def load_tests(_loader, tests, _pattern):
    lines = load(".ci/lines")
    for module in (lines, lines.rust):
        tests.addTests(doctest.DocTestSuite(module))
    return tests
