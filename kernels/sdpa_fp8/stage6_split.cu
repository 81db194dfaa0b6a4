// Stage 6, Hopper, short problems: few queries must keep 132 SMs busy, and no
// step may wait for another that could run beside it. A block has 64 queries:
// one warpgroup loads and decodes V, the other does the rest. Where that leaves
// half of the GPU idle, a cluster of two blocks shares the keys of one tile of
// queries, and each finishes half of the columns with what the other sends it
// through distributed shared memory.
//
// Tile: 64 keys (32 for D = 128), four at a time. Q·Kᵀ in FP8 for all four at
// once, P·V in FP16, 16 keys at a time, both wgmma: the weights of one step are
// computed while the tensor cores are busy with the last one, and the maxima of
// the next tile in between. A row's reference moves only when a score exceeds it by
// 2^8, as in stage6_wgmma.
// Shared memory (dynamic): two buffers of four tiles of K codes (4 KiB each),
// four of V in FP16 (8 KiB each), what the other block sends, Q, a barrier (struct
// Layout).
// Registers: at most 224 (210; scores 128, O 32 for D = 64): one block an SM. With
// the scores of three tiles at a time it is 168, and batch512 3 % slower.
// Bound by: latency: one load, two products, exp, one exchange, one store; and the
// load by the L2, from which 128 SMs ask 36 KiB each at once.
// Heads whose scales allow scores beyond what FP8 products resolve take exact
// scores, a tile at a time (hopper.cuh).
// D = 64 or 128, causal or not. sm_90a alone.
// Measured (H200, graph replay, µs, L2 warm/flushed): small 2.1/2.4, mission
// 3.9/4.5, batch512 5.2/6.1, long 28.0/29.5, big 216/218; with exact scores small 2.2/2.5,
// mission 5.4/6.1, batch512 8.1/8.8, long 51, big 397. An empty kernel takes 0.9/1.0,
// loading and storing alone 1.7/2.4. Cycles at mission (an earlier version, 2 GHz,
// of 5800): first copy asked for 650, arrived 1700, first scores 2000, weights and
// P·V 4600, sent 4900, received 5500. Profile: issue slots 15 %, special-function
// units 11 %, tensor cores 8 %, L2 8 %.
// What it owes to what (mission, warm/flushed): no cluster where no block needs
// another, small 2.6/2.9 to 2.1/2.4; code for D = 64 ahead of that for 128, 4.25/4.7
// to 4.2/4.6; columns sent as FP16, to 4.1/4.5; V asked for after K, to 3.9/4.5.
// Tried without gain: four warpgroups with a tile of keys each (5.7), two with two
// (4.9; again with an exchange of four parts through the cluster 5.3, and with 32
// queries a block, twice in the 64 rows of a product, and no cluster 4.4/5.1, though
// long took 25); some exp as a polynomial (+0.1); P·V 32 or 64 keys at a time (+0.1,
// +0.2); waiting for the other block without sleep; plain stores to the other block
// and an arrival a warp (4.4); the first tile's scores before the others have come
// (4.0/4.6, batch512 6.0); a fence before each tile's Q·Kᵀ (long +9 %).
//
// Launch: with n = ceildiv(S, 64) tiles of queries a head, grid [2*n, H, B] and
// cluster [2] for pairs of blocks that share keys, or grid [n, H, B] for blocks on
// their own; block 256, dynamic shared memory Layout<D>::BYTES.

#include "barrier.cuh"
#include "hopper.cuh"

constexpr int THREADS = 256;
constexpr int TILES = 4; // of keys, whose scores a warpgroup has in its registers at once

template <int D>
struct Layout {
    static constexpr int KEYS = TILE / D;
    static constexpr int K = TILES * TILE; // one of two buffers
    static constexpr int V = 2 * K;
    static constexpr int RECEIVED = V + TILES * 2 * TILE;
    static constexpr int SENT = (D / 32 + 1) * 2048;
    static constexpr int Q = RECEIVED + SENT;
    static constexpr int BARRIER = Q + 64 * D;
    static constexpr int BYTES = BARRIER + 16;
};

// Queries and what is known of them: per lane of warp w, rows 16*w + g and + 8.
template <int D>
struct Queries {
    uint64_t q;       // operand
    uint32_t q_codes; // and its address
    float o[D / 2], top[2], sum[2];
};

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

// Starts the copies of a group of tiles of K. Whole tiles need no look at each row, and
// the swizzle repeats every 8 rows: one address does for all.
template <int D>
__device__ __forceinline__ void copy_tiles(uint32_t to, const uint8_t* k, int first, int end, int tiles) {
    constexpr int KEYS = TILE / D;
    int thread = threadIdx.x % 128;
    if (first + TILES * KEYS <= end) {
        const uint8_t* from = k + first * D + thread * 16;
        to += code_at<D>(thread / (D / 16), thread % (D / 16));
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++) copy16_async(to + 2048 * i, from + 2048 * i);
    } else {
#pragma unroll
        for (int t = 0; t < TILES; t++)
            if (t < tiles) copy_codes<D, 128>(to + t * TILE, k, first + t * KEYS, end, thread);
    }
}

template <int D>
__device__ __forceinline__ void copy_queries(uint32_t to, const uint8_t* q, int first, int S) {
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
        int piece = threadIdx.x % 128 + 128 * i, row = piece / (D / 16);
        bool valid = first + row < S;
        copy16_async(to + code_at<D>(row, piece % (D / 16)), q + (valid ? first * D + 16 * piece : 0), valid);
    }
}

// The weights of tile t are computed while the tensor cores multiply those of
// the tile before with V; the maxima of tile t + 1 come in between.
template <int D, int COUNT, bool EXACT>
__device__ __forceinline__ void consume(Queries<D>& x, uint32_t k_tiles, uint32_t v_tiles, int first, int key, int end, int first_row, bool causal, float scale, bool again) {
    constexpr int KEYS = TILE / D, N = KEYS / 2, STEPS = KEYS / 16;
    float s[COUNT][N], best[2];
    k_tiles += first * TILE, v_tiles += first * 2 * TILE, key += first * KEYS;
    uint64_t k = codes_operand<D>(k_tiles), v = values_operand<D>(v_tiles);
    if (!EXACT) wgmma_fence();
#pragma unroll
    for (int t = 0; t < COUNT; t++) {
        if constexpr (EXACT) {
            exact_scores<D>(s[t], x.q_codes, k_tiles + t * TILE);
        } else {
#pragma unroll
            for (int i = 0; i < D / 32; i++) wgmma_scores(s[t], operand_after(x.q, 32 * i), operand_after(k, t * TILE + 32 * i), i > 0);
            wgmma_commit();
        }
    }
    wgmma_wait<COUNT - 1>();
    hold(s[0]);
    mask_scores<D>(s[0], key, first_row, end, causal);
    row_maxima(s[0], best);
#pragma unroll
    for (int t = 0; t < COUNT; t++) {
        if (t == 0 && !again) {
            x.top[0] = fmaxf(LOWEST, best[0]), x.top[1] = fmaxf(LOWEST, best[1]);
        } else if (__any_sync(0xffffffffu, (best[0] - x.top[0]) * scale > HEADROOM || (best[1] - x.top[1]) * scale > HEADROOM)) {
            wgmma_wait<0>();
            hold(x.o);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float next = fmaxf(x.top[r], best[r]), rescale = exp2_fast((x.top[r] - next) * scale);
                x.top[r] = next;
                x.sum[r] *= rescale;
#pragma unroll
                for (int i = 0; i < D / 4; i++) x.o[i / 2 * 4 + 2 * r + i % 2] *= rescale;
            }
        }
        float shift[2] = {x.top[0] * scale, x.top[1] * scale};
        if (t + 1 < COUNT) {
            wgmma_wait<COUNT - 2>(); // what came after those scores, and the last products with V
            hold(s[t + 1]);
            mask_scores<D>(s[t + 1], key + (t + 1) * KEYS, first_row, end, causal);
        }
        asm volatile("bar.sync %0, 256;" ::"r"(2 + first + t) : "memory");
#pragma unroll
        for (int j = 0; j < STEPS; j++) {
            uint32_t weights[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float a = exp2_fast(s[t][8 * j + 2 * i] * scale - shift[i % 2]), b = exp2_fast(s[t][8 * j + 2 * i + 1] * scale - shift[i % 2]);
                x.sum[i % 2] += a + b;
                weights[i] = pack_half2(a, b);
            }
            wgmma_fence();
            wgmma_values(x.o, weights, operand_after(v, t * 2 * TILE + 2048 * j), 1);
            if (j == 0 && t + 1 < COUNT) row_maxima(s[t + 1], best);
        }
        wgmma_commit();
    }
#pragma unroll
    for (int r = 0; r < 2; r++) asm volatile("" : "+f"(x.sum[r]));
    wgmma_wait<0>();
    hold(x.o);
}

// This thread's 16-byte pieces of TILES tiles of V codes; beyond end they are 0.
template <int D>
__device__ __forceinline__ void load_values(uint4 (&codes)[2 * TILES], const uint8_t* v, int first, int end) {
    const uint4* from = reinterpret_cast<const uint4*>(v + first * D) + threadIdx.x % 128;
    int last = first + TILES * (TILE / D) <= end ? 2 * TILES * 128 : (end - first) * (D / 16); // pieces that exist
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        codes[i] = make_uint4(0, 0, 0, 0);
        if (int(threadIdx.x % 128) + 128 * i < last) codes[i] = __ldg(from + 128 * i);
    }
}

// Half of the columns go to the other block, divided by the sum so that FP16 holds
// them; the other half goes to memory with what comes from there.
template <int D>
__device__ __forceinline__ void exchange(const Queries<D>& x, uint32_t room, float scale, float out_scale, __half* o, int first_row, int S, int rank) {
    using L = Layout<D>;
    constexpr int HALF = D / 32; // in units of 16 columns
    int thread = threadIdx.x % 128, lane = threadIdx.x % 32;
    uint32_t received = room + L::RECEIVED + thread * 16;
    uint32_t there = address_in(received, rank ^ 1), barrier = address_in(room + L::BARRIER, rank ^ 1);
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; r++) inverse[r] = x.sum[r] > 0 ? __fdividef(1, x.sum[r]) : 0; // a block may have no key for a row
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); // the other block's barrier is there

    send(there, barrier, x.top[0], x.top[1], x.sum[0], x.sum[1]);
    float mine[D / 4];
#pragma unroll
    for (int m = 0; m < HALF; m++) {
        uint32_t theirs[4];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            int at = 8 * m + 2 * n;
            float low[2] = {x.o[at], x.o[at + 1]}, high[2] = {x.o[8 * HALF + at], x.o[8 * HALF + at + 1]};
            theirs[n] = pack_half2((rank ? low[0] : high[0]) * inverse[n % 2], (rank ? low[1] : high[1]) * inverse[n % 2]);
            mine[at] = rank ? high[0] : low[0], mine[at + 1] = rank ? high[1] : low[1];
        }
        send(there + (m + 1) * 2048, barrier, __uint_as_float(theirs[0]), __uint_as_float(theirs[1]), __uint_as_float(theirs[2]), __uint_as_float(theirs[3]));
    }

    barrier_wait(room + L::BARRIER, 0);

    float4 stats = load_shared(received);
    float a[2], b[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float top = r == 0 ? stats.x : stats.y, sum = r == 0 ? stats.z : stats.w, best = fmaxf(x.top[r], top);
        a[r] = exp2_fast((x.top[r] - best) * scale), b[r] = exp2_fast((top - best) * scale) * sum;
        float norm = __fdividef(out_scale, x.sum[r] * a[r] + b[r]);
        a[r] *= norm, b[r] *= norm;
    }
    __half* to = o + (first_row + lane / 4) * D + 16 * HALF * rank + lane % 4 * 4;
#pragma unroll
    for (int m = 0; m < HALF; m++) {
        float4 packed = load_shared(received + (m + 1) * 2048);
        const float* own = mine + 8 * m;
        float out[8];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            float word = n == 0 ? packed.x : n == 1 ? packed.y : n == 2 ? packed.z : packed.w;
            float2 y = __half22float2(*reinterpret_cast<__half2*>(&word));
            out[2 * n] = own[2 * n] * a[n % 2] + y.x * b[n % 2], out[2 * n + 1] = own[2 * n + 1] * a[n % 2] + y.y * b[n % 2];
        }
        if (first_row + lane / 4 < S) *reinterpret_cast<uint2*>(to + 16 * m) = make_uint2(pack_half2(out[0], out[1]), pack_half2(out[4], out[5]));
        if (first_row + lane / 4 + 8 < S) *reinterpret_cast<uint2*>(to + 16 * m + 8 * D) = make_uint2(pack_half2(out[2], out[3]), pack_half2(out[6], out[7]));
    }
}

template <int D>
__device__ __forceinline__ void finish(const Queries<D>& x, float out_scale, __half* o, int first_row, int S) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float norm = __fdividef(out_scale, x.sum[r]);
        int row = first_row + lane / 4 + 8 * r;
        if (row >= S) continue;
#pragma unroll
        for (int m = 0; m < D / 16; m++)
            *reinterpret_cast<uint2*>(o + row * D + 16 * m + lane % 4 * 4) =
                make_uint2(pack_half2(x.o[8 * m + 2 * r] * norm, x.o[8 * m + 2 * r + 1] * norm), pack_half2(x.o[8 * m + 4 + 2 * r] * norm, x.o[8 * m + 5 + 2 * r] * norm));
    }
}

// All keys, whose first group of tiles is on its way. COUNT: tiles whose scores are had at once.
template <int D, int COUNT, bool EXACT>
__device__ __forceinline__ void attend_keys(Queries<D>& x, uint32_t room, const uint8_t* k, int tiles, int key, int end, int first_row, bool causal, float scale) {
    using L = Layout<D>;
    constexpr int ALL = TILES * L::KEYS;
    uint32_t buffer = 0;
    for (bool again = false; key < end; key += ALL, buffer ^= L::K) {
        wait_copies<0>();
        fence_to_tensor_cores();
        asm volatile("bar.sync 1, 128;" ::: "memory");

        if (again) asm volatile("bar.arrive 6, 256;" ::: "memory");
        if (key + ALL < end) copy_tiles<D>(room + (buffer ^ L::K), k, key + ALL, end, TILES);
        commit_copies();
#pragma unroll 1
        for (int t = 0; t < tiles; t += COUNT, again = true) consume<D, COUNT, EXACT>(x, room + buffer, room + L::V, t, key, end, first_row, causal, scale, again);
    }
}

template <int D>
__device__ __forceinline__ void attend(uint32_t room, const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
                                       const float* v_scale, __half* o, int H, int S, bool causal) {
    using L = Layout<D>;
    constexpr int KEYS = L::KEYS, ALL = TILES * KEYS;

    int blocks = (S + 63) / 64;
    bool pair = gridDim.x >= 2 * blocks;
    int block = pair ? blockIdx.x / 2 : blockIdx.x, rank = pair ? blockIdx.x % 2 : 0;
    size_t base = (size_t)(blockIdx.z * H + blockIdx.y) * S * D;
    int end = causal ? min(S, block * 64 + 64) : S, key = 0;
    if (pair) {
        int half = ((end + KEYS - 1) / KEYS + 1) / 2 * KEYS;
        if (rank == 0) end = min(end, half);
        else key = half;
    }
    int tiles = end - key <= KEYS ? 1 : TILES; // in a group; a short problem has no more than one

    if (threadIdx.x >= 128) { // decodes V
        // Before any load, which the fence would wait for.
        if (pair) {
            if (threadIdx.x == THREADS - 32) {
                barrier_init(room + L::BARRIER, 1);
                asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            }
            __syncwarp();
            asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
            if (threadIdx.x == THREADS - 32) asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(room + L::BARRIER), "r"(L::SENT) : "memory");
            __syncwarp();
        }
        uint4 codes[2 * TILES];
        // Where all SMs ask at once, K is asked for first: it is needed first.
        if (pair) asm volatile("bar.sync 7, 256;" ::: "memory");
        if (key < end) load_values<D>(codes, v + base, key, end);

        for (bool again = false; key < end; key += ALL, again = true) {
            if (again) asm volatile("bar.sync 6, 256;" ::: "memory");
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                if (t == tiles) break;
#pragma unroll
                for (int i = 0; i < 2; i++) decode_piece<D>(room + L::V + t * 2 * TILE, codes[2 * t + i], threadIdx.x % 128 + 128 * i);
                fence_to_tensor_cores();
                asm volatile("bar.arrive %0, 256;" ::"r"(2 + t) : "memory");
            }
            if (key + ALL < end) load_values<D>(codes, v + base, key + ALL, end);
        }
        return;
    }

    float q_unit = __ldg(q_scale + blockIdx.y), k_unit = __ldg(k_scale + blockIdx.y), out_scale = __ldg(v_scale + blockIdx.y);
    if (key < end) copy_tiles<D>(room, k + base, key, end, tiles);
    copy_queries<D>(room + L::Q, q + base, block * 64, S);
    commit_copies();
    if (pair) {
        asm volatile("bar.arrive 7, 256;" ::: "memory");
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }
    float scale = softmax_scale_log2(q_unit, k_unit, D);

    int first_row = block * 64 + threadIdx.x / 32 * 16;
    Queries<D> x;
    x.q = codes_operand<D>(room + L::Q), x.q_codes = room + L::Q;
#pragma unroll
    for (int i = 0; i < D / 2; i++) x.o[i] = 0;
    x.top[0] = x.top[1] = LOWEST, x.sum[0] = x.sum[1] = 0;
    bool exact = needs_exact_scores(scale);
    if (!exact && tiles == TILES) attend_keys<D, TILES, false>(x, room, k + base, TILES, key, end, first_row, causal, scale);
    else if (!exact) attend_keys<D, 1, false>(x, room, k + base, 1, key, end, first_row, causal, scale);
    else attend_keys<D, 1, true>(x, room, k + base, tiles, key, end, first_row, causal, scale);
    x.sum[0] = quad_sum(x.sum[0]), x.sum[1] = quad_sum(x.sum[1]);
    if (pair) exchange<D>(x, room, scale, out_scale, o + base, first_row, S, rank);
    else finish<D>(x, out_scale, o + base, first_row, S);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    extern __shared__ __align__(1024) uint8_t room[];
    if (D == 128) {
        attend<128>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, H, S, causal);
        return;
    }
    attend<64>(shared_address(room), q, k, v, q_scale, k_scale, v_scale, o, H, S, causal);
}
