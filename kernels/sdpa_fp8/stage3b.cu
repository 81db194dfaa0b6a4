// Stage 3b, softmax fused in registers: both products are mma.sync m16n8k16 in
// FP16, scores never leave the registers, and the online softmax rescales
// the output where it is, in accumulators whose layout is known.
//
// Tile: 64 queries x 64 keys (32 for D = 128), 128 threads; a warp owns 16 queries.
// Shared memory (static): codes of K and V, two buffers: 2 x 2 x 4 KiB; codes of
// Q 8 KiB; all XOR-swizzled.
// Registers: at most 128 (scores 32 and O 32 for D = 64, 16 and 64 for D = 128).
// Bound by: issue slots, shared by decoding, exp and the HMMAs; every warp
// decodes all of K and V for itself.
// D = 64 or 128, causal or not.
// Measured (H200, graph replay, µs, L2 warm/flushed): mission 7.8/8.7, batch512
// 8.0/9.0, long 37.8/38.6, big 261. Profile at mission, where a scheduler has one
// warp: issue slots 37 %, tensor cores 22 %, special-function units 16 %, DRAM 2 %.
//
// Launch: grid ceildiv(S, 64)*H*B, block 128.

#include "flash.cuh"

constexpr int THREADS = 128;
constexpr int ROWS = 64;
constexpr int TILE = 4096; // bytes: 64 keys for D = 64, 32 for D = 128

template <int D>
__device__ __forceinline__ void attend(uint32_t at, uint32_t q_room, const uint8_t* q, const uint8_t* k, const uint8_t* v, __half* o, float scale, const float* v_scale, int H, int S, bool causal) {
    constexpr int KEYS = TILE / D;
    auto [head, block] = Place(S, ROWS);
    k += (size_t)head * S * D, v += (size_t)head * S * D;
    int first_row = block * ROWS + threadIdx.x / 32 * 16;
    int end = causal ? min(S, (block + 1) * ROWS) : S;
    copy_keys<D, KEYS, THREADS>(at, at + TILE, k, v, 0, S, threadIdx.x);
    commit_copies();

    Rows<D, false> rows;
    rows.start(q + (size_t)head * S * D, first_row, S, q_room);
    for (int key = 0, buffer = 0; key < end; key += KEYS, buffer ^= 1) {
        wait_copies<0>();
        __syncthreads();
        if (key + KEYS < end) {
            uint32_t next = at + (buffer ^ 1) * 2 * TILE;
            copy_keys<D, KEYS, THREADS>(next, next + TILE, k, v, key + KEYS, S, threadIdx.x);
            commit_copies();
        }
        uint32_t k_tile = at + buffer * 2 * TILE;
        float s[KEYS / 8][4];
        rows.template scores<KEYS>(s, k_tile);
        if (key + KEYS > S || causal && key + KEYS > first_row) rows.template mask<KEYS>(s, first_row, key, S, causal);
        rows.template softmax<KEYS, false>(s, scale);
        rows.template accumulate<KEYS>(s, k_tile + TILE);
    }
    Place last(S, ROWS);
    rows.finish(o + (size_t)last.head * S * D, last.block * ROWS + threadIdx.x / 32 * 16, S, v_scale[last.head % H]);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    __shared__ __align__(128) uint8_t tiles[2 * 2 * TILE];
    __shared__ __align__(128) uint8_t q_tile[ROWS * 128];
    uint32_t at = shared_address(tiles);
    int head = Place(S, ROWS).head;
    float scale = softmax_scale_log2(q_scale[head % H], k_scale[head % H], D);
    if (D == 64) attend<64>(at, shared_address(q_tile) + threadIdx.x / 32 * 16 * 64, q, k, v, o, scale, v_scale, H, S, causal);
    if (D == 128) attend<128>(at, shared_address(q_tile) + threadIdx.x / 32 * 16 * 128, q, k, v, o, scale, v_scale, H, S, causal);
}
