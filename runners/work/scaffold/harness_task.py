"""Measures submission.py by the inputs and the reference of a GPU MODE task, for kernelgate's command mode.

kernelgate gives the seed, and compares outputs with ref_kernel itself: the task's own evaluation and its
check_implementation are not used.
"""
import importlib.util
import os
import sys
import types

import kernelgate_bench

HERE = os.path.dirname(os.path.abspath(__file__))


class Nothing:
    """Stands in for types and context managers of the task's helpers."""

    def __init__(self, *args, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def helper(name):
    """Gives imports of a helper something, where the task's folder has no such file."""
    if os.path.exists(os.path.join(HERE, name + ".py")):
        return
    module = types.ModuleType(name)
    module.__getattr__ = lambda attribute: Nothing if attribute[:1].isupper() or attribute.endswith("_t") else (lambda *args, **options: None)
    sys.modules[name] = module


def load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, name + ".py"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def one(output):
    """All elements of the outputs: a single output as it is, several one after the other."""
    if not isinstance(output, tuple):
        return output
    if len(output) == 1:
        return output[0]
    if hasattr(output[0], "flatten"):
        import torch

        return torch.cat([o.flatten().double() for o in output])
    return [v for o in output for v in o]


def problem(dims, seed, distribution):
    want = one(reference.ref_kernel(reference.generate_input(**dims, seed=seed)))
    data = reference.generate_input(**dims, seed=seed)
    return (lambda: one(submission.custom_kernel(data))), want


sys.path.insert(0, HERE)
helper("utils")
helper("task")
reference = load("reference")
submission = load("submission")
kernelgate_bench.run(problem, abs=1e-2, rel=1e-2)  # guess: how far an element may be off
