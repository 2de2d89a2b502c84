"""Loads a script as a module, for the tests of this folder and for scripts that share its code."""

import importlib.machinery
import importlib.util
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load(path):
    """The module of the script at a path from the root."""
    sys.dont_write_bytecode = True
    folder, name = os.path.split(os.path.join(ROOT, path))
    sys.path.append(folder)
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(folder, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
