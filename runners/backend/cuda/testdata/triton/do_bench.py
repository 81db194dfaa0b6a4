"""Times a Triton kernel the way its author would: triton.testing.do_bench around a just-in-time launch.

usage: do_bench.py REQUEST    (a file of JSON; prints the medians of several calls in µs as a list)
"""
import importlib.util
import json
import sys
import time

import torch
import triton

with open(sys.argv[1]) as f:
    request = json.load(f)
spec = importlib.util.spec_from_file_location("kernel", request["source"])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel = getattr(module, request["entry"])
types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
args = []
for a in request["arguments"]:
    if "shape" in a:
        args.append(torch.randn(a["shape"], device="cuda", dtype=types[a["dtype"]]))
        if "tile" in a:
            from triton.tools.tensor_descriptor import TensorDescriptor
            tile = a["tile"]
            args[-1] = TensorDescriptor(args[-1], tile["Shape"], tile["Strides"], tile["Box"], "nan" if tile["NaNFill"] else "zero")
    else:
        args.append(a["value"] if a["dtype"].startswith("f") else int(a["value"]))


def launch():
    kernel[tuple(request["grid"])](*args, **request["constants"], num_warps=request["warps"], num_stages=request["stages"])


launch()
torch.cuda.synchronize()
times = []
for _ in range(request["repeat"]):
    # A multiplication that runs for longer, or again too soon, meets the power limit; the gate's rounds are short and a second apart.
    time.sleep(0.5)
    times.append(triton.testing.do_bench(launch, warmup=5, rep=20, return_mode="median") * 1e3)
print(json.dumps(times))
