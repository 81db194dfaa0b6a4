// mbarriers in shared memory: producers say that a tile is full, consumers
// that it is empty again.
#pragma once

#include "common.cuh"

__device__ __forceinline__ void barrier_init(uint32_t at, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(uint32_t at) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at) : "memory");
}

// Counts as the arrival of all 32 lanes. Enough where they have only had the tensor
// cores read; racecheck does not see that it orders what other lanes did themselves.
__device__ __forceinline__ void barrier_arrive_for_warp(uint32_t at) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0], 32; }" ::"r"(at) : "memory");
}

// Arrives once this thread's copies so far have landed.
__device__ __forceinline__ void barrier_arrive_after_copies(uint32_t at) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
}

// Tells at once whether the phase of this parity is over.
__device__ __forceinline__ bool barrier_over(uint32_t at, uint32_t parity) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(parity) : "memory");
    return done;
}

// Waits until it is. try_wait lets the thread sleep meanwhile.
__device__ __forceinline__ void barrier_wait(uint32_t at, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
    uint32_t done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(parity) : "memory");
    } while (!done);
#else
    while (!barrier_over(at, parity)) {}
#endif
}

// A place in a ring of STAGES tiles, and whether the ring has gone round an odd
// number of times; both in one register.
template <int STAGES>
struct Ring {
    int slot = 0;
    __device__ __forceinline__ int stage() const { return slot < STAGES ? slot : slot - STAGES; }
    __device__ __forceinline__ uint32_t parity() const { return slot >= STAGES; }
    __device__ __forceinline__ void next() { slot = slot + 1 == 2 * STAGES ? 0 : slot + 1; }
};
