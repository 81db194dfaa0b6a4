// Stage 6, FP8 tensor cores: Q·Kᵀ is mma.sync m16n8k32 on the codes themselves,
// with nothing to decode. P·V stays FP16: weights rounded to E4M3 (3 bits of
// mantissa) would cost 2.5 % of error. KEY_SPLITS groups of warps share a
// tile of queries, each takes every KEY_SPLITS-th tile of keys, and group 0
// merges what they have: short problems get more warps, and every warp more
// company.
//
// Tile: 16*ROW_WARPS queries x 64 keys (32 for D = 128), 32*ROW_WARPS*KEY_SPLITS
// threads; a warp owns 16 queries and, of the keys, its group's share.
// Shared memory (dynamic): codes of K and V, two buffers a group: KEY_SPLITS x 2
// x 2 x 4 KiB, and of Q, all XOR-swizzled; afterwards the partial results of the
// groups, one after the other.
// Registers: at most 128.
// Bound by: issue slots: exp, the decoding of V and the HMMAs of P·V. On
// sm_90 there is no FP8 mma.sync, and K is decoded as in stage 3b.
// D = 64 or 128, causal or not.
// Measured (H200, graph replay, µs), 4x2: mission 7.2, batch512 7.4, long 35.4, big
// 257; 2x2: mission 5.5, batch 4.1, long 36.9, big 268; 2x4: mission 5.7. Profile
// at mission, 2x2: 30 % of issue slots, special-function units 14 %.
//
// Launch: grid ceildiv(S, 16*ROW_WARPS)*H*B, block 32*ROW_WARPS*KEY_SPLITS,
// dynamic shared memory KEY_SPLITS*16384 + 16*D*ROW_WARPS*KEY_SPLITS.

#include "flash.cuh"

#ifndef ROW_WARPS
#define ROW_WARPS 4
#endif
#ifndef KEY_SPLITS
#define KEY_SPLITS 2
#endif

#if __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1000
constexpr bool FP8 = true;
#else
constexpr bool FP8 = false; // mma.sync would be emulated
#endif
constexpr int GROUP = 32 * ROW_WARPS;
constexpr int THREADS = GROUP * KEY_SPLITS;
constexpr int ROWS = 16 * ROW_WARPS;
constexpr int TILE = 4096; // bytes: 64 keys for D = 64, 32 for D = 128

// A barrier for the threads of one group.
__device__ __forceinline__ void sync_group(int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(GROUP) : "memory");
}

// Brings the rows of all groups together in group 0, one group after the
// other, so that the sum has one order. room holds one group's rows.
template <int D>
__device__ __forceinline__ void merge(Rows<D, FP8>& rows, float* room, float scale, int group) {
    constexpr int VALUES = D / 2 + 4;
    float* mine = room + threadIdx.x % GROUP / 32 * VALUES * 32 + threadIdx.x % 32;
    for (int from = 1; from < KEY_SPLITS; from++) {
        __syncthreads();
        if (group == from) {
#pragma unroll
            for (int i = 0; i < D / 2; i++) mine[i * 32] = rows.o[i / 4][i % 4];
#pragma unroll
            for (int r = 0; r < 2; r++) mine[(D / 2 + r) * 32] = rows.top[r], mine[(D / 2 + 2 + r) * 32] = rows.sum[r];
        }
        __syncthreads();
        if (group == 0) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float theirs = mine[(D / 2 + r) * 32], best = fmaxf(rows.top[r], theirs);
                float a = exp2_fast((rows.top[r] - best) * scale), b = exp2_fast((theirs - best) * scale);
                rows.top[r] = best;
                rows.sum[r] = rows.sum[r] * a + mine[(D / 2 + 2 + r) * 32] * b;
#pragma unroll
                for (int i = 0; i < D / 8; i++)
#pragma unroll
                    for (int j = 2 * r; j < 2 * r + 2; j++) rows.o[i][j] = rows.o[i][j] * a + mine[(4 * i + j) * 32] * b;
            }
        }
    }
}

template <int D>
__device__ __forceinline__ void attend(uint8_t* tiles, const uint8_t* q, const uint8_t* k, const uint8_t* v, __half* o, float scale, const float* v_scale, int H, int S, bool causal) {
    constexpr int KEYS = TILE / D;
    auto [head, block] = Place(S, ROWS);
    k += (size_t)head * S * D, v += (size_t)head * S * D;
    constexpr int STEP = KEYS * KEY_SPLITS;
    int group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    uint32_t at = shared_address(tiles) + group * 4 * TILE;
    int first_row = block * ROWS + thread / 32 * 16;
    int end = causal ? min(S, (block + 1) * ROWS) : S;

    int key = group * KEYS;
    if (key < end) copy_keys<D, KEYS, GROUP>(at, at + TILE, k, v, key, S, thread);
    commit_copies();
    Rows<D, FP8> rows;
    rows.start(q + (size_t)head * S * D, first_row, S, shared_address(tiles) + KEY_SPLITS * 4 * TILE + threadIdx.x / 32 * 16 * D);
    for (int buffer = 0; key < end; key += STEP, buffer ^= 1) {
        wait_copies<0>();
        sync_group(group);
        if (key + STEP < end) {
            uint32_t next = at + (buffer ^ 1) * 2 * TILE;
            copy_keys<D, KEYS, GROUP>(next, next + TILE, k, v, key + STEP, S, thread);
            commit_copies();
        }
        uint32_t k_tile = at + buffer * 2 * TILE;
        float s[KEYS / 8][4];
        rows.template scores<KEYS>(s, k_tile);
        if (key + KEYS > S || causal && key + KEYS > first_row) rows.template mask<KEYS>(s, first_row, key, S, causal);
        rows.template softmax<KEYS, true>(s, scale);
        rows.template accumulate<KEYS>(s, k_tile + TILE);
    }
    if (KEY_SPLITS > 1) merge<D>(rows, reinterpret_cast<float*>(tiles), scale, group);
    if (group == 0) {
        Place last(S, ROWS);
        rows.finish(o + (size_t)last.head * S * D, last.block * ROWS + thread / 32 * 16, S, v_scale[last.head % H]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    extern __shared__ __align__(128) uint8_t tiles[];
    int head = Place(S, ROWS).head;
    float scale = softmax_scale_log2(q_scale[head % H], k_scale[head % H], D);
    if (D == 64) attend<64>(tiles, q, k, v, o, scale, v_scale, H, S, causal);
    if (D == 128) attend<128>(tiles, q, k, v, o, scale, v_scale, H, S, causal);
}
