"""Measures ModelNew of submission.py against Model of a KernelBench problem, for kernelgate's command mode.

kernelgate gives the seed and the sizes: whole numbers of the problem's module have the values of the shape. Inputs,
weights and the comparison follow from them alone; the benchmark's own evaluation is not used.
"""
import importlib.util
import os
import random
import sys

import kernelgate_bench

HERE = os.path.dirname(os.path.abspath(__file__))
PROBLEM = "@PROBLEM@"


def load(name, values=()):
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, name + ".py"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__.update(values)
    return module


def seeded(seed, make, *args):
    """Calls something that draws random numbers, which are the same for the same seed."""
    random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    return make(*args)


def placed(value):
    """Moves a module or a tensor to the GPU, if there is one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and hasattr(value, "to"):
        return value.to("cuda")
    return value


def problem(dims, seed, distribution):
    module = load(PROBLEM, {name: value for name, value in dims.items() if name != "case"})
    submission = load("submission")
    start = seeded(seed, module.get_init_inputs) if hasattr(module, "get_init_inputs") else []
    model = placed(seeded(seed, module.Model, *start))
    candidate = placed(seeded(seed, submission.ModelNew, *start))
    want = model(*[placed(v) for v in seeded(seed, module.get_inputs)])
    inputs = [placed(v) for v in seeded(seed, module.get_inputs)]
    return (lambda: candidate(*inputs)), want


sys.path.insert(0, HERE)
kernelgate_bench.run(problem, abs=1e-2, rel=1e-2)  # guess: how far an element may be off
