"""A kernel in CuTe DSL, compiled ahead of time: no GPU, no driver. kernelgate calls it with the folder to write to in OUT and the
architecture in ARCH."""
import json
import os

os.environ["CUTE_DSL_DUMP_DIR"] = os.environ["OUT"]  # it leaves the cubin there first, and the kernel's own folder is read-only

import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.cute.runtime import make_ptr

BLOCK = 256


@cute.kernel
def scale(x: cute.Pointer, y: cute.Pointer, n: Int32):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * BLOCK + thread
    if i < n:
        cute.make_tensor(y, cute.make_layout(n))[i] = cute.make_tensor(x, cute.make_layout(n))[i] * Float32(2)


@cute.jit
def launch(x: cute.Pointer, y: cute.Pointer, n: Int32):
    scale(x, y, n).launch(grid=[1, 1, 1], block=[BLOCK, 1, 1])  # the manifest says how it is launched


def anywhere():
    return make_ptr(Float32, 16, cute.AddressSpace.gmem, assumed_align=16)


made = cute.compile(launch, anywhere(), anywhere(), Int32(0), options=f"--gpu-arch {os.environ['ARCH']} --keep-cubin")
out = os.environ["OUT"]
with open(os.path.join(out, "kernel.cubin"), "wb") as f:
    f.write(made.__cubin__)
with open(os.path.join(out, "kernel.json"), "w") as f:
    json.dump({"entry": next(iter(made.kernel_info)), "block": [BLOCK]}, f)
