// Stage 6, FP8 tensor cores: Q·Kᵀ is mma.sync m16n8k32 on the codes themselves,
// with nothing to decode. P·V stays FP16: weights rounded to E4M3 (3 bits of
// mantissa) would cost 2.5 % of error. KEY_SPLITS groups of warps share a
// tile of queries, and each takes every KEY_SPLITS-th tile of keys: short
// problems get more warps, and every warp more company. In the end each
// group merges its share of the columns of all groups and writes it.
//
// Tile: 16*ROW_WARPS queries x 64 keys (32 for D = 128), 32*ROW_WARPS*KEY_SPLITS
// threads; a warp owns 16 queries and, of the keys, its group's share.
// Shared memory (dynamic), per group: codes of K and V, two buffers, 2 x 2 x 4 KiB,
// and of Q, 16*D*ROW_WARPS, all XOR-swizzled; afterwards what the group hands to
// the others (struct Merge).
// Registers: at most 128.
// Bound by: issue slots: exp, the decoding of V and the HMMAs of P·V. On
// sm_90 there is no FP8 mma.sync, and K is decoded as in stage 3b.
// D = 64 or 128, causal or not.
// Measured (H200, graph replay, µs, L2 warm/flushed), 4x2: small 2.7/3.2, mission
// 6.6/7.3, batch512 6.8/7.5, long 33.8/34.3, big 251; 2x2: small 2.6/3.1, mission
// 5.1/5.7, batch 3.6/4.3, batch512 6.8/7.4, long 34.8/35.2, big 250; 2x4: mission
// 4.8/5.4; 4x4, 1x4 and 2x8 are slower. With a merge in group 0 alone, one tile
// asked for at a time and divisions for the block's place, 4x2 took 7.1/8.0 and
// 2x2 5.5/6.4 at mission.
// Profile at mission, 4x2: issue slots 41 %, tensor cores 26 %, special-function
// units 19 %; 2x2: 26, 16 and 12 %.
//
// Launch: grid [ceildiv(S, 16*ROW_WARPS), H, B], block 32*ROW_WARPS*KEY_SPLITS,
// dynamic shared memory KEY_SPLITS*Layout<D>::REGION.

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

// Sizes of one group's shared memory. A unit is what a lane holds of 16 columns of
// one row: unit 2*c + r is columns 16*c + 4*t and on of row g + 8*r.
template <int D>
struct Layout {
    static constexpr int UNITS = D / 8 / KEY_SPLITS; // that each group ends with
    static constexpr int UNIT = 16 * GROUP;
    static constexpr int STATS = (D / 8 - UNITS) * UNIT;
    static constexpr int TILES = 4 * TILE + 16 * D * ROW_WARPS, GIVEN = STATS + UNIT;
    static constexpr int REGION = TILES > GIVEN ? TILES : GIVEN;
};

// A barrier for the threads of one group. Its number is a constant, so that no
// other barriers are set aside.
template <int NUMBER = 0>
__device__ __forceinline__ void sync_group(int group) {
    if (group == NUMBER) asm volatile("bar.sync %0, %1;" ::"n"(NUMBER + 1), "n"(GROUP) : "memory");
    else if constexpr (NUMBER + 1 < KEY_SPLITS) sync_group<NUMBER + 1>(group);
}

__device__ __forceinline__ void store_shared(uint32_t at, float a, float b, float c, float d) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

// Leaves for the other groups their units of these rows, and the maxima and sums.
template <int D>
__device__ __forceinline__ void give(const Rows<D, FP8>& rows, uint32_t region, int group) {
    using L = Layout<D>;
    uint32_t at = region + threadIdx.x % GROUP * 16;
#pragma unroll
    for (int u = 0; u < D / 8; u++) {
        int owner = u / L::UNITS, i = u / 2 * 2, j = u % 2 * 2;
        if (owner != group) store_shared(at + (u - (owner > group ? L::UNITS : 0)) * L::UNIT, rows.o[i][j], rows.o[i + 1][j], rows.o[i][j + 1], rows.o[i + 1][j + 1]);
    }
    store_shared(at + L::STATS, rows.top[0], rows.top[1], rows.sum[0], rows.sum[1]);
}

// Merges OWNER's units with what the other groups gave, and writes them.
template <int D, int OWNER = 0>
__device__ __forceinline__ void take(Rows<D, FP8>& rows, uint32_t room, int group, float scale, float v_scale, __half* out, int first, int S) {
    using L = Layout<D>;
    if (group != OWNER) {
        if constexpr (OWNER + 1 < KEY_SPLITS) take<D, OWNER + 1>(rows, room, group, scale, v_scale, out, first, S);
        return;
    }
    uint32_t at = room + threadIdx.x % GROUP * 16;
    float weight[KEY_SPLITS][2], best[2] = {rows.top[0], rows.top[1]}, sum[2] = {0, 0};
    float4 stats[KEY_SPLITS];
#pragma unroll
    for (int from = 0; from < KEY_SPLITS; from++) {
        stats[from] = from == OWNER ? make_float4(rows.top[0], rows.top[1], rows.sum[0], rows.sum[1]) : load_shared(at + from * L::REGION + L::STATS);
        best[0] = fmaxf(best[0], stats[from].x), best[1] = fmaxf(best[1], stats[from].y);
    }
#pragma unroll
    for (int from = 0; from < KEY_SPLITS; from++) {
        weight[from][0] = exp2_fast((stats[from].x - best[0]) * scale), weight[from][1] = exp2_fast((stats[from].y - best[1]) * scale);
        sum[0] += stats[from].z * weight[from][0], sum[1] += stats[from].w * weight[from][1];
    }
    float norm[2] = {v_scale / quad_sum(sum[0]), v_scale / quad_sum(sum[1])};
#pragma unroll
    for (int u = OWNER * L::UNITS; u < (OWNER + 1) * L::UNITS; u++) {
        int r = u % 2, row = first + threadIdx.x % 32 / 4 + 8 * r;
        float mine[4] = {}, a = weight[OWNER][r];
#pragma unroll
        for (int from = 0; from < KEY_SPLITS; from++) {
            if (from == OWNER) continue;
            float4 x = load_shared(at + from * L::REGION + (u - (OWNER > from ? L::UNITS : 0)) * L::UNIT);
            float b = weight[from][r];
            mine[0] += x.x * b, mine[1] += x.y * b, mine[2] += x.z * b, mine[3] += x.w * b;
        }
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int i = u / 2 * 2 + n % 2, j = 2 * r + n / 2;
            rows.o[i][j] = rows.o[i][j] * a + mine[n];
            mine[n] = rows.o[i][j] * norm[r];
        }
        if (row < S) *reinterpret_cast<uint2*>(out + (size_t)row * D + u / 2 * 16 + threadIdx.x % 4 * 4) = make_uint2(pack_half2(mine[0], mine[1]), pack_half2(mine[2], mine[3]));
    }
}

template <int D>
__device__ __forceinline__ void attend(uint32_t room, const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
                                       const float* v_scale, __half* o, int H, int S, bool causal) {
    using L = Layout<D>;
    constexpr int KEYS = TILE / D, STEP = KEYS * KEY_SPLITS;
    int group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    uint32_t at = room + group * L::REGION;
    size_t base = (size_t)(blockIdx.z * H + blockIdx.y) * S * D;
    k += base, v += base;
    int end = causal ? min(S, int(blockIdx.x + 1) * ROWS) : S;

    // The first two tiles are asked for at once.
    int key = group * KEYS;
    if (key < end) copy_keys<D, KEYS, GROUP>(at, at + TILE, k, v, key, S, thread);
    commit_copies();
    if (key + STEP < end) copy_keys<D, KEYS, GROUP>(at + 2 * TILE, at + 3 * TILE, k, v, key + STEP, S, thread);
    commit_copies();
    int first_row = blockIdx.x * ROWS + thread / 32 * 16;
    float scale = softmax_scale_log2(q_scale[blockIdx.y], k_scale[blockIdx.y], D);
    Rows<D, FP8> rows;
    rows.start(q + base, first_row, S, at + 4 * TILE + thread / 32 * 16 * D);
    for (int buffer = 0; key < end; key += STEP, buffer ^= 1) {
        wait_copies<1>();
        sync_group(group);
        uint32_t k_tile = at + buffer * 2 * TILE;
        float s[KEYS / 8][4];
        rows.template scores<KEYS>(s, k_tile);
        if (key + KEYS > S || causal && key + KEYS > first_row) rows.template mask<KEYS>(s, first_row, key, S, causal);
        rows.template softmax<KEYS, true>(s, scale);
        rows.template accumulate<KEYS>(s, k_tile + TILE);
        if (key + 2 * STEP < end) {
            sync_group(group); // all warps are done with this buffer
            copy_keys<D, KEYS, GROUP>(k_tile, k_tile + TILE, k, v, key + 2 * STEP, S, thread);
        }
        commit_copies();
    }
    float out_scale = v_scale[blockIdx.y];
    if (KEY_SPLITS == 1) {
        rows.finish(o + base, first_row, S, out_scale);
        return;
    }
    sync_group(group);
    give<D>(rows, at, group);
    // One barrier is enough. But after barriers of single groups, compute-sanitizer's
    // racecheck takes the next one of all for less than it is and reports races that
    // are none; a second one (0.2 % of mission) leaves no doubt.
    __syncthreads();
    __syncthreads();
    take<D>(rows, room, group, scale, out_scale, o + base, first_row, S);
}

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    extern __shared__ __align__(128) uint8_t room[];
    if (D == 64) attend<64>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, H, S, causal);
    if (D == 128) attend<128>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, H, S, causal);
}
