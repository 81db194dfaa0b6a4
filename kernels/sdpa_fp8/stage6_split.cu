// Stage 6, Hopper, short problems: few queries must keep 132 SMs busy, and no
// step may wait for another that could run beside it. A block has 64 queries,
// and its four warpgroups share the keys: each loads, decodes and multiplies
// tiles of its own, and all their first tiles are under way before anything
// is waited for. Where even that leaves half of the GPU idle, a cluster of two
// blocks shares the keys of one tile of queries, and the partial results meet
// through distributed shared memory.
//
// Tile: 64 keys (32 for D = 128); tile t belongs to block t/4 % 2 of the cluster
// and warpgroup t % 4. Q·Kᵀ in FP8, P·V in FP16, both wgmma; Q in registers.
// K's codes come by cp.async, V's through registers, where they are decoded.
// Shared memory (dynamic): per warpgroup two buffers of K codes (4 KiB) and of V
// in FP16 (8 KiB), later its partial result; what the other block of the
// cluster sends; a barrier for it.
// Registers: at most 128 (scores 32, O 32, weights 16, Q 8, V 8 for D = 64).
// Bound by: latency: one load, two products, exp, two merges, one store.
// D = 64 or 128, causal or not. sm_90a alone.
// Measured (H200, graph replay, µs): small 4.1, mission 5.7 (6.5 without pairs),
// batch512 6.6, long 27.6. Profile at mission: 37 % of issue slots, special-
// function units 21 %; stalls spread over loads, barriers and dependencies.
//
// Launch: with n = ceildiv(S, 64) tiles of queries a head, grid [H*B, 2*n] for
// pairs of blocks that share keys, or [H*B, roundup(n, 2)] for blocks on their
// own; cluster [1, 2], block 512, dynamic shared memory Layout<D>::BYTES.

#include "barrier.cuh"
#include "hopper.cuh"

constexpr int GROUPS = 4; // warpgroups
constexpr int THREADS = 128 * GROUPS;

template <int D>
struct Layout {
    static constexpr int KEYS = TILE / D;
    static constexpr int PARTIAL = (D / 2 + 4) * 512;                  // one warpgroup's result
    static constexpr int REGION = D == 64 ? 6 * TILE : PARTIAL + 1024; // one warpgroup's buffers, and then its result
    static constexpr int RECEIVED = GROUPS * REGION;
    static constexpr int SENT = (D / 8 + 4) * 512; // a quarter of the columns
    static constexpr int BARRIER = RECEIVED + 2 * SENT;
    static constexpr int BYTES = BARRIER + 16;
};

__device__ __forceinline__ float4 load_shared(uint32_t at) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at) : "memory");
    return x;
}

__device__ __forceinline__ void store_shared(uint32_t at, float a, float b, float c, float d) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

// The same place in another block's shared memory.
__device__ __forceinline__ uint32_t address_in(uint32_t at, int rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

// 16 bytes to the other block, whose barrier counts them in.
__device__ __forceinline__ void send(uint32_t to, uint32_t barrier, float a, float b, float c, float d) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to), "f"(a), "f"(b), "f"(c), "f"(d), "r"(barrier) : "memory");
}

// A quarter of the columns of two rows, as several partial results come
// together: each is worth 2^((top - best)*scale). Of the values, 0 and 1 are
// the first row's, 2 and 3 the second's, and so on.
template <int N>
struct Merged {
    float o[N], top[2], sum[2];

    __device__ __forceinline__ void add(uint32_t stats, uint32_t values, float scale) {
        float4 s = load_shared(stats);
        float theirs[2] = {s.x, s.y}, a[2], b[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float best = fmaxf(top[r], theirs[r]);
            a[r] = exp2_fast((top[r] - best) * scale), b[r] = exp2_fast((theirs[r] - best) * scale);
            top[r] = best;
            sum[r] = sum[r] * a[r] + (r == 0 ? s.z : s.w) * b[r];
        }
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            float4 x = load_shared(values + i / 4 * 2048);
            o[i] = o[i] * a[0] + x.x * b[0], o[i + 1] = o[i + 1] * a[0] + x.y * b[0];
            o[i + 2] = o[i + 2] * a[1] + x.z * b[1], o[i + 3] = o[i + 3] * a[1] + x.w * b[1];
        }
    }
};

// This thread's two 16-byte pieces of a tile of V codes; beyond S they are 0.
template <int D>
__device__ __forceinline__ void load_values(uint4 (&x)[2], const uint8_t* v, int first, int S) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int piece = threadIdx.x % 128 + 128 * i, row = first + piece / (D / 16);
        x[i] = make_uint4(0, 0, 0, 0);
        if (row < S) x[i] = __ldg(reinterpret_cast<const uint4*>(v + row * D + piece % (D / 16) * 16));
    }
}

template <int D>
__device__ __forceinline__ void attend(uint32_t room, const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
                                       const float* v_scale, __half* o, int H, int S, bool causal) {
    using L = Layout<D>;
    constexpr int KEYS = L::KEYS;
    int blocks = (S + 63) / 64;
    bool pair = gridDim.y >= 2 * blocks;
    int head = blockIdx.x, block = pair ? blockIdx.y / 2 : blockIdx.y, rank = pair ? blockIdx.y % 2 : 0;
    if (block >= blocks) return; // only where no block waits for it
    if (pair) {
        if (threadIdx.x == 0) {
            barrier_init(room + L::BARRIER, 1);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(room + L::BARRIER), "r"(2 * L::SENT) : "memory");
        }
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }

    size_t base = (size_t)head * S * D;
    int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), thread = threadIdx.x % 128, lane = threadIdx.x % 32;
    int first_row = block * 64 + thread / 32 * 16;
    int needed = (S + KEYS - 1) / KEYS;
    if (causal) needed = min(needed, (block * 64 + 63) / KEYS + 1);
    int t = rank * GROUPS + group, step = pair ? 2 * GROUPS : GROUPS;
    uint32_t region = room + group * L::REGION;

    // Everything that comes from memory is asked for at once.
    uint4 codes[2];
    if (t < needed) {
        copy_codes<D, 128>(region, k + base, t * KEYS, S, thread);
        commit_copies();
        load_values<D>(codes, v + base, t * KEYS, S);
    }
    uint32_t query[D / 32][4];
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
        int row = first_row + lane / 4 + i % 2 * 8;
        query[i / 4][i % 4] = row < S ? __ldg(reinterpret_cast<const uint32_t*>(q + base + row * D + lane % 4 * 4 + i / 2 * 16)) : 0;
    }
    int scale_at = head % H;
    float scale = softmax_scale_log2(q_scale[scale_at], k_scale[scale_at], D), out_scale = v_scale[scale_at];

    float acc[D / 2], top[2] = {LOWEST, LOWEST}, sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < D / 2; i++) acc[i] = 0;
    for (uint32_t buffer = 0; t < needed; t += step, buffer ^= 1) {
        uint32_t k_tile = region + buffer * TILE, v_tile = region + (2 + 2 * buffer) * TILE;
#pragma unroll
        for (int i = 0; i < 2; i++) decode_piece<D>(v_tile, codes[i], thread + 128 * i);
        wait_copies<0>();
        fence_to_tensor_cores();
        asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");

        float s[KEYS / 2], rescale[2];
        uint32_t weights[KEYS / 4];
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < D / 32; i++) wgmma_scores(s, query[i], operand_after(codes_operand<D>(k_tile), 32 * i), i > 0);
        wgmma_commit();
        // All warps are past the products that read the other buffer.
        if (t + step < needed) {
            copy_codes<D, 128>(region + (buffer ^ 1) * TILE, k + base, (t + step) * KEYS, S, thread);
            commit_copies();
            load_values<D>(codes, v + base, (t + step) * KEYS, S);
        }
        wgmma_wait<0>();
        hold(s);
        mask_scores<D>(s, t * KEYS, first_row, S, causal);
        if (to_weights<true>(s, top, sum, rescale, scale)) {
#pragma unroll
            for (int i = 0; i < D / 2; i++) acc[i] *= rescale[i / 2 % 2];
        }
        pack(weights, s);
        add_values<D>(acc, weights, values_operand<D>(v_tile));
        wgmma_wait<0>();
        hold(acc);
    }

    // Every warpgroup hands its result to all, and then merges a quarter of the
    // columns.
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
#pragma unroll
    for (int i = 0; i < D / 8; i++) store_shared(region + i * 2048 + thread * 16, acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3]);
    store_shared(region + D / 8 * 2048 + thread * 16, top[0], top[1], sum[0], sum[1]);
    __syncthreads();
    Merged<D / 8> mine = {{}, {LOWEST, LOWEST}, {}};
#pragma unroll
    for (int from = 0; from < GROUPS; from++) {
        uint32_t theirs = room + from * L::REGION + thread * 16;
        mine.add(theirs + D / 8 * 2048, theirs + group * (D / 32) * 2048, scale);
    }

    // Of a pair, block 0 finishes the first half of the columns, block 1 the
    // second.
    if (pair) {
        uint32_t received = room + L::RECEIVED + group % 2 * L::SENT + thread * 16;
        if (group / 2 != rank) {
            asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); // the other block's barrier is there
            uint32_t there = address_in(received, rank ^ 1), barrier = address_in(room + L::BARRIER, rank ^ 1);
#pragma unroll
            for (int i = 0; i < D / 32; i++) send(there + i * 2048, barrier, mine.o[4 * i], mine.o[4 * i + 1], mine.o[4 * i + 2], mine.o[4 * i + 3]);
            send(there + D / 32 * 2048, barrier, mine.top[0], mine.top[1], mine.sum[0], mine.sum[1]);
            return;
        }
        barrier_wait(room + L::BARRIER, 0);
        mine.add(received + D / 32 * 2048, received, scale);
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
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
    if (D == 64) attend<64>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, H, S, causal);
    if (D == 128) attend<128>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, H, S, causal);
}
