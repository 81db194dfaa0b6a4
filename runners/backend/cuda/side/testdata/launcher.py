"""Asks Triton's own launcher what it passes for a tensor descriptor: launcher.py FOLDER < CASES

Nothing is launched: the call that would make a tensor map is written down in place of the map. Prints for each
case the bytes of the parameters as the launcher declares them, and their values.
"""
import json
import re
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])
import triton
from triton.backends.nvidia import driver
from triton.tools.tensor_descriptor import TensorDescriptor

SIZES = {"CUtensorMap": 128, "nvTmaDesc": 128, "CUdeviceptr": 8, "int64_t": 8, "i64": 8, "int32_t": 4, "i32": 4, "int8_t": 1, "i1": 1}


def fill(address, swizzle, elem_size, elem_type, block, shape, strides, padding):
    return {"address": address, "swizzle": swizzle, "size": elem_size, "type": elem_type, "box": list(block), "shape": list(shape), "strides": list(strides), "padding": padding}


triton.runtime.driver.set_active(SimpleNamespace(utils=SimpleNamespace(fill_tma_descriptor=fill, fill_tma_descriptor_tiled=fill)))


def sizes(signature, meta):
    if hasattr(driver, "expand_signature"):
        return [SIZES.get(t, 8) for t in driver.expand_signature([signature], meta, "nvTmaDesc")]
    declared = re.search(r"CUdeviceptr profile_scratch, ([^)]*)\)", driver.make_launcher({}, {"x": signature}, meta)).group(1)
    return [SIZES[d.split()[0]] for d in declared.split(", ")]


out = []
for case in json.load(sys.stdin):
    base = SimpleNamespace(data_ptr=lambda: case["address"], dtype=SimpleNamespace(itemsize=case["size"], is_floating_point=True))
    d = TensorDescriptor(base, case["shape"], case["strides"], case["block"], case["padding"])
    meta = case["meta"]
    rest = [None] * (driver.make_tensordesc_arg.__code__.co_argcount - 2)
    values = driver.make_tensordesc_arg(d, meta, *rest)
    out.append({"sizes": sizes(case["signature"], [meta] if meta else []), "values": [case["address"] if v is base else int(v) if isinstance(v, bool) else v for v in values]})
print(json.dumps(out))
