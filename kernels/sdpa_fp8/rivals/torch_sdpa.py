"""PyTorch's scaled_dot_product_attention as a rival: one backend, replayed from a CUDA graph.

    python3 torch_sdpa.py flash|cudnn|efficient|math

Prints JSON lines for `kernelgate check --rivals`. The protocol is that of the GPU worker. Before every sample, on one
stream: other inputs are copied under the same pointers, outputs get NaN, persisting L2 lines are let go, and twice the
L2 is written; then event, launch, event. Short kernels are timed in batches of up to 32 over as many inputs, as many as
take 200 us. Warm-up lasts 30 ms. A batch is captured once and replayed, so that PyTorch's dispatch costs nothing.

What differs from the worker:
- Q, K and V are FP16, two bytes an element: PyTorch has no FP8 attention. Neither are there scales.
- The rival has processes of its own, behind the candidate's rounds: its samples are not interleaved with anything, so
  a drift of the clocks between them does not cancel, and there is no A/A control and no mark on throttled samples.
- Outputs lie where PyTorch's allocator puts them, with no guards around them. The last batch alone is checked, against
  attention in FP32 on the same inputs.
"""

import ctypes
import json
import math
import os
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
SAMPLE_US, MAX_BATCH, INPUT_SETS, WARM_SECONDS = 200, 32, 4, 0.03


class Problem:
    """One shape: inputs to rotate over, the slots that launches read, and the outputs they leave."""

    def __init__(self, dims, seed):
        shape = (3, dims["B"], dims["H"], dims["S"], dims["D"])
        self.causal, self.shape = bool(dims.get("causal", 0)), shape
        self.random = torch.Generator("cuda").manual_seed(seed)
        self.slots = [self.draw()]
        self.outputs = [self.attend(0)]
        batch = min(max(math.ceil(SAMPLE_US / self.rough()), 1), MAX_BATCH)
        self.sets = [self.draw() for _ in range(max(batch, INPUT_SETS))]
        self.slots = [torch.empty_like(self.sets[0]) for _ in range(batch)]
        self.launch = self.replay()

    def draw(self):
        return torch.randn(self.shape, device="cuda", generator=self.random).half()

    def attend(self, slot):
        return scaled_dot_product_attention(*self.slots[slot], is_causal=self.causal)

    def rough(self):
        """Microseconds of a launch: the shortest of a few runs by the host's clock."""
        best = math.inf
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(8):
                self.attend(0)
            torch.cuda.synchronize()
            best = min(best, (time.perf_counter() - start) / 8 * 1e6)
        return best

    def replay(self):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            self.outputs = [self.attend(i) for i in range(len(self.slots))]
        return graph.replay

    def refill(self, shift):
        for i, slot in enumerate(self.slots):
            slot.copy_(self.sets[(i + shift) % len(self.sets)])
        for out in self.outputs:
            out.fill_(math.nan)

    def check(self):
        for slot, out in zip(self.slots, self.outputs):
            q, k, v = (x.float() for x in slot)
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            if self.causal:
                later = torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").triu(1)
                scores.masked_fill_(later, -math.inf)
            want = scores.softmax(-1) @ v
            norm = ((out.float() - want).norm() / want.norm()).item()
            if not norm < 0.01:
                raise RuntimeError("its output is wrong: norm error %g" % norm)


class Clock:
    def __init__(self):
        l2 = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self.flush = torch.empty(max(2 * l2, 64 << 20) // 4, dtype=torch.int32, device="cuda")
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def sample(self, problem, shift):
        problem.refill(shift)
        if self.driver.cuCtxResetPersistingL2Cache() != 0:
            raise RuntimeError("the driver does not reset persisting L2 lines")
        self.flush.fill_(shift)
        self.start.record()
        problem.launch()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e6 / len(problem.slots)


def measure(dims, seed, samples, clock):
    problem = Problem(dims, seed)
    start, n = time.perf_counter(), 0
    while n < 3 or time.perf_counter() - start < WARM_SECONDS:
        clock.sample(problem, n)
        n += 1
    times = [clock.sample(problem, i * 7) for i in range(samples)]
    problem.check()
    return times


def main(backend):
    out = os.fdopen(int(os.environ.get("KERNELGATE_RESULT_FD", "1")), "w")
    seed, samples = int(os.environ.get("KERNELGATE_SEED", "0")), int(os.environ.get("KERNELGATE_SAMPLES", "50"))
    refusals = []

    def emit(**line):
        print(json.dumps(line, allow_nan=False), file=out, flush=True)

    try:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()), sdpa_kernel(BACKENDS[backend]):
            clock = Clock()
            shapes = json.loads(os.environ["KERNELGATE_SHAPES"])
            for shape in shapes:
                try:
                    emit(shape=shape["name"], ns=measure(shape["dims"], seed, samples, clock))
                except RuntimeError as refused:
                    # A backend need not know every shape: the others count.
                    if "No available kernel" not in str(refused):
                        raise
                    refusals.append(str(refused))
            if len(refusals) == len(shapes):
                raise RuntimeError("the backend knows none of the shapes: " + refusals[0])
    except Exception as failed:
        emit(error="%s: %s" % (type(failed).__name__, str(failed).splitlines()[0]))
        raise SystemExit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
