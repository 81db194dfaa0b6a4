// Stage 6, Hopper, short problems: few queries must keep 132 SMs busy, and no
// step may wait for another that could run beside it. A block has 64 queries,
// and its four warpgroups share the keys: each copies, decodes and multiplies
// tiles of its own, and all their first tiles are under way at once. Where
// even that leaves half of the GPU idle, a cluster of two blocks shares the
// keys of one tile of queries, and the partial results meet through
// distributed shared memory.
//
// Tile: 64 keys (32 for D = 128); tile t belongs to block t/4 % 2 of the cluster
// and warpgroup t % 4. Q·Kᵀ in FP8, P·V in FP16, both wgmma.
// Shared memory (dynamic): per warpgroup two buffers of K codes (4 KiB), V codes
// (4 KiB) and V in FP16 (8 KiB), later its partial result; Q; the results that
// the other block of the cluster sends.
// Registers: at most 128 (scores 32, O 32, weights 16).
// Bound by: latency: one load, two products, exp, two merges, one store.
// D = 64 or 128, causal or not. sm_90a alone.
//
// Launch: with n = ceildiv(S, 64)*H*B tiles of queries, grid 2*n for pairs of
// blocks that share keys, or roundup(n, 2) for blocks on their own; cluster 2,
// block 512, dynamic shared memory see Layout.

#include "hopper.cuh"

constexpr int GROUPS = 4; // warpgroups
constexpr int THREADS = 128 * GROUPS;

template <int D>
struct Layout {
    static constexpr int KEYS = TILE / D;
    static constexpr int PARTIAL = (D / 2 + 4) * 512;                 // one warpgroup's result
    static constexpr int REGION = D == 64 ? 8 * TILE : PARTIAL + 1024; // one warpgroup's buffers, and then its result
    static constexpr int Q = GROUPS * REGION;
    static constexpr int RECEIVED = Q + 64 * D;
    static constexpr int SENT = (D / 8 + 4) * 512; // a quarter of the columns
    static constexpr int BYTES = RECEIVED + 2 * SENT;
};

__device__ __forceinline__ void sync_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

__device__ __forceinline__ float load_shared(uint32_t at) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
    return x;
}

__device__ __forceinline__ void store_shared(uint32_t at, float x) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory"); }

// The same place in the other block's shared memory.
__device__ __forceinline__ uint32_t peer_address(uint32_t at, int rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

__device__ __forceinline__ void store_peer(uint32_t at, float x) { asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory"); }

template <int D>
__device__ __forceinline__ void copy_tile(uint32_t region, int buffer, const uint8_t* k, const uint8_t* v, int first, int S) {
    constexpr int CHUNKS = D / 16;
#pragma unroll
    for (int i = 0; i < TILE / 16 / 128; i++) {
        int piece = threadIdx.x % 128 + 128 * i, row = piece / CHUNKS, chunk = piece % CHUNKS;
        bool valid = first + row < S;
        int from = (valid ? first + row : 0) * D + 16 * chunk;
        copy16_async(region + buffer * TILE + code_at<D>(row, chunk), k + from, valid);
        copy16_async(region + (2 + buffer) * TILE + 16 * piece, v + from, valid);
    }
}

// A thread decodes what it copied itself.
template <int D>
__device__ __forceinline__ void decode_tile(uint32_t region, int buffer) {
    decode_values<D>(region + (4 + 2 * buffer) * TILE, region + (2 + buffer) * TILE, threadIdx.x % 128);
    fence_to_tensor_cores();
}

// A row's partial results come together: each is worth 2^((top - best)*scale).
template <int N>
struct Merged {
    float o[N], top[2], sum[2];

    __device__ __forceinline__ void add(uint32_t stats, uint32_t values, float scale) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float theirs = load_shared(stats + r * 512), best = fmaxf(top[r], theirs);
            float a = exp2_fast((top[r] - best) * scale), b = exp2_fast((theirs - best) * scale);
            top[r] = best;
            sum[r] = sum[r] * a + load_shared(stats + (2 + r) * 512) * b;
#pragma unroll
            for (int i = 0; i < N; i++)
                if (i / 2 % 2 == r) o[i] = o[i] * a + load_shared(values + i * 512) * b;
        }
    }
};

template <int D>
__device__ __forceinline__ void attend(uint32_t room, const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
                                       const float* v_scale, __half* o, int B, int H, int S, bool causal) {
    using L = Layout<D>;
    constexpr int KEYS = L::KEYS;
    int blocks = (S + 63) / 64, work = B * H * blocks;
    int split = gridDim.x >= 2 * work ? 2 : 1;
    int item = blockIdx.x / split, rank = split == 2 ? blockIdx.x % 2 : 0;
    if (item >= work) return; // only where no block waits for it
    if (split == 2) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

    int head = item / blocks, first = item % blocks * 64;
    size_t base = (size_t)head * S * D;
    k += base, v += base;
    int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), thread = threadIdx.x % 128, lane = threadIdx.x % 32;
    uint32_t region = room + group * L::REGION;
    int first_row = first + thread / 32 * 16;
    int needed = causal ? min((S + KEYS - 1) / KEYS, (first + 63) / KEYS + 1) : (S + KEYS - 1) / KEYS;
    int t = rank * GROUPS + group, step = split * GROUPS;

    for (int piece = threadIdx.x; piece < 64 * D / 16; piece += THREADS) {
        int row = piece / (D / 16), chunk = piece % (D / 16);
        bool valid = first + row < S;
        copy16_async(room + L::Q + code_at<D>(row, chunk), q + base + (valid ? first + row : 0) * D + 16 * chunk, valid);
    }
    if (t < needed) copy_tile<D>(region, 0, k, v, t * KEYS, S);
    commit_copies();
    if (t + step < needed) copy_tile<D>(region, 1, k, v, (t + step) * KEYS, S);
    commit_copies();
    float scale = softmax_scale_log2(q_scale[head % H], k_scale[head % H], D), out_scale = v_scale[head % H];

    float acc[D / 2], top[2] = {LOWEST, LOWEST}, sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < D / 2; i++) acc[i] = 0;
    wait_copies<1>();
    if (t < needed) decode_tile<D>(region, 0);
    fence_to_tensor_cores();
    __syncthreads();

    for (int buffer = 0; t < needed; t += step, buffer ^= 1) {
        float s[KEYS / 2], rescale[2];
        uint32_t weights[KEYS / 4];
        bool more = t + step < needed;
        begin_scores<D>(s, codes_operand<D>(room + L::Q), codes_operand<D>(region + buffer * TILE));
        if (more) {
            wait_copies<0>();
            decode_tile<D>(region, buffer ^ 1);
        }
        wgmma_wait<0>();
        hold(s);
        mask_scores<D>(s, t * KEYS, first_row, S, causal);
        if (to_weights<true>(s, top, sum, rescale, scale)) {
#pragma unroll
            for (int i = 0; i < D / 2; i++) acc[i] *= rescale[i / 2 % 2];
        }
        pack(weights, s);
        add_values<D>(acc, weights, values_operand<D>(region + (4 + 2 * buffer) * TILE));
        wgmma_wait<0>();
        hold(acc);
        if (more) {
            sync_group(group);
            if (t + 2 * step < needed) copy_tile<D>(region, buffer, k, v, (t + 2 * step) * KEYS, S);
            commit_copies();
        }
    }

    // Every warpgroup hands its result to all, and then merges a quarter of the
    // columns.
    sync_group(group);
#pragma unroll
    for (int i = 0; i < D / 2 + 4; i++)
        store_shared(region + i * 512 + thread * 4, i < D / 2 ? acc[i] : i < D / 2 + 2 ? top[i - D / 2] : sum[i - D / 2 - 2]);
    __syncthreads();
    Merged<D / 8> mine = {{}, {LOWEST, LOWEST}, {}};
#pragma unroll
    for (int from = 0; from < GROUPS; from++) {
        uint32_t theirs = room + from * L::REGION + thread * 4;
        mine.add(theirs + D / 2 * 512, theirs + group * (D / 8) * 512, scale);
    }

    // Of a pair, block 0 finishes the first half of the columns, block 1 the
    // second.
    if (split == 2) {
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); // the other block has begun
        uint32_t received = room + L::RECEIVED + group % 2 * L::SENT + thread * 4;
        if (group / 2 != rank) {
            uint32_t there = peer_address(received, rank ^ 1);
#pragma unroll
            for (int i = 0; i < D / 8; i++) store_peer(there + i * 512, mine.o[i]);
#pragma unroll
            for (int r = 0; r < 2; r++) store_peer(there + (D / 8 + r) * 512, mine.top[r]), store_peer(there + (D / 8 + 2 + r) * 512, mine.sum[r]);
        }
        asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
        if (group / 2 != rank) return;
        mine.add(received + D / 8 * 512, received, scale);
    }

#pragma unroll
    for (int r = 0; r < 2; r++) {
        float norm = out_scale / quad_sum(mine.sum[r]);
        int row = first_row + lane / 4 + 8 * r;
        if (row >= S) continue;
        __half* to = o + base + row * D + group * (D / 4) + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < D / 32; i++)
            *reinterpret_cast<uint32_t*>(to + 8 * i) = pack_half2(mine.o[4 * i + 2 * r] * norm, mine.o[4 * i + 2 * r + 1] * norm);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    extern __shared__ __align__(1024) uint8_t room[];
    if (D == 64) attend<64>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, B, H, S, causal);
    if (D == 128) attend<128>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, B, H, S, causal);
}
