// Stage 5, warp specialisation: NUM_PRODUCER_WARPS warps do nothing but copy K
// and V into a ring of NUM_STAGES tiles; four warps do nothing but compute.
// mbarriers between them replace __syncthreads. Blocks are persistent: each
// takes every gridDim.x-th tile of queries, and the producers are already
// copying for the next one while the last is being written. USE_FAST_EXP=1
// takes exp2 from the special-function unit without its range correction.
//
// Tile: 64 queries x 64 keys (32 for D = 128), 128 computing threads.
// Shared memory (static): codes of K and V, NUM_STAGES x 2 x 4 KiB, codes of Q 8
// KiB, all XOR-swizzled, and 2 x NUM_STAGES barriers.
// Registers: at most 120; scores 32, O 32 for D = 64.
// Bound by: issue slots of the computing warps. Every lane says that it is done
// with a tile, not one for its warp: that costs nothing, and racecheck sees it.
// D = 64 or 128, causal or not.
// Measured (H200, graph replay, µs, L2 warm/flushed): mission 8.0/8.9, batch512
// 8.2/9.0, long 37.2/37.9, big 264: the copies were hidden before, and a producer
// warp takes issue slots. Profile at mission: issue slots 33 %, tensor cores 22 %,
// special-function units 16 %.
//
// Launch: any grid (best: what fits the GPU at once), block 128 +
// 32*NUM_PRODUCER_WARPS.

#include "barrier.cuh"
#include "flash.cuh"

#ifndef NUM_STAGES
#define NUM_STAGES 3
#endif
#ifndef NUM_PRODUCER_WARPS
#define NUM_PRODUCER_WARPS 1
#endif
#ifndef USE_FAST_EXP
#define USE_FAST_EXP 1
#endif

constexpr int CONSUMERS = 128;
constexpr int PRODUCERS = 32 * NUM_PRODUCER_WARPS;
constexpr int ROWS = 64;
constexpr int TILE = 4096; // bytes: 64 keys for D = 64, 32 for D = 128

struct Problem {
    const uint8_t *q, *k, *v;
    const float *q_scale, *k_scale, *v_scale;
    __half* o;
    int B, H, S;
    bool causal;

    __device__ __forceinline__ int blocks() const { return (S + ROWS - 1) / ROWS; }
    __device__ __forceinline__ int work() const { return B * H * blocks(); }
    // Long rows first where causal makes rows of different length.
    __device__ __forceinline__ int block(int work) const { return causal ? blocks() - 1 - work % blocks() : work % blocks(); }
    __device__ __forceinline__ int end(int block) const { return causal ? min(S, (block + 1) * ROWS) : S; }
};

template <int D>
__device__ __forceinline__ void produce(const Problem& p, uint32_t tiles, uint32_t full, uint32_t empty) {
    constexpr int KEYS = TILE / D;
    Ring<NUM_STAGES> ring;
    for (int work = blockIdx.x; work < p.work(); work += gridDim.x) {
        size_t base = (size_t)(work / p.blocks()) * p.S * D;
        int end = p.end(p.block(work));
        for (int key = 0; key < end; key += KEYS, ring.next()) {
            barrier_wait(empty + 8 * ring.stage(), ring.parity() ^ 1);
            uint32_t to = tiles + ring.stage() * 2 * TILE;
            copy_keys<D, KEYS, PRODUCERS>(to, to + TILE, p.k + base, p.v + base, key, p.S, threadIdx.x - CONSUMERS);
            barrier_arrive_after_copies(full + 8 * ring.stage());
        }
    }
    wait_copies<0>();
}

template <int D>
__device__ __forceinline__ void consume(const Problem& p, uint32_t q_tile, uint32_t tiles, uint32_t full, uint32_t empty) {
    constexpr int KEYS = TILE / D;
    Ring<NUM_STAGES> ring;
    int warp = threadIdx.x / 32;
    for (int work = blockIdx.x; work < p.work(); work += gridDim.x) {
        int head = work / p.blocks(), block = p.block(work);
        int first_row = block * ROWS + warp * 16;
        float scale = softmax_scale_log2(p.q_scale[head % p.H], p.k_scale[head % p.H], D);
        scale = __shfl_sync(0xffffffffu, scale, 0); // the same in all lanes, and so free for a uniform register
        Rows<D, false> rows;
        rows.start(p.q + (size_t)head * p.S * D, first_row, p.S, q_tile + warp * 16 * D);
        // The end is asked for anew each time: one register less in the loop.
        for (int key = 0; key < p.end(p.block(work)); key += KEYS, ring.next()) {
            barrier_wait(full + 8 * ring.stage(), ring.parity());
            uint32_t k_tile = tiles + ring.stage() * 2 * TILE;
            float s[KEYS / 8][4];
            rows.template scores<KEYS>(s, k_tile);
            if (key + KEYS > p.S || p.causal && key + KEYS > first_row) rows.template mask<KEYS>(s, first_row, key, p.S, p.causal);
            rows.template softmax<KEYS, USE_FAST_EXP>(s, scale);
            rows.template accumulate<KEYS>(s, k_tile + TILE);
            barrier_arrive(empty + 8 * ring.stage());
        }
        // Computed again, so that it takes no registers during the loop.
        int done = work;
        asm volatile("" : "+r"(done));
        head = done / p.blocks();
        rows.finish(p.o + (size_t)head * p.S * D, p.block(done) * ROWS + warp * 16, p.S, p.v_scale[head % p.H]);
    }
}

extern "C" __global__ void __maxnreg__(120)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    __shared__ __align__(128) uint8_t ring[NUM_STAGES * 2 * TILE];
    __shared__ __align__(128) uint8_t q_codes[ROWS * 128];
    __shared__ __align__(8) uint64_t barriers[2 * NUM_STAGES];
    uint32_t tiles = shared_address(ring), full = shared_address(barriers), empty = full + 8 * NUM_STAGES;
    if (threadIdx.x == 0)
        for (int i = 0; i < NUM_STAGES; i++) {
            barrier_init(full + 8 * i, PRODUCERS);
            barrier_init(empty + 8 * i, CONSUMERS);
        }
    __syncthreads();

    Problem p = {q, k, v, q_scale, k_scale, v_scale, o, B, H, S, causal != 0};
    if (threadIdx.x >= CONSUMERS) {
        if (D == 64) produce<64>(p, tiles, full, empty);
        if (D == 128) produce<128>(p, tiles, full, empty);
    } else {
        if (D == 64) consume<64>(p, shared_address(q_codes), tiles, full, empty);
        if (D == 128) consume<128>(p, shared_address(q_codes), tiles, full, empty);
    }
}
