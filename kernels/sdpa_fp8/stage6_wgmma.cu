// Stage 6, Hopper: warpgroup products (wgmma). Q·Kᵀ runs on the codes, in FP8; K
// and Q are K-major as they lie. P·V runs in FP16 with the weights from
// registers: wgmma takes FP8 only K-major, which V is not, and weights in E4M3
// would cost 2.5 % of error. A producer warpgroup copies K as it is and
// decodes V once for all.
//
// Four consumer warpgroups, each 64 queries: ROW groups x KEY groups, chosen by
// the shape so that all SMs have work: 4x1 (256 queries a block), 2x2, 1x4 (64
// queries, each warpgroup takes every 4th tile of keys; group 0 merges).
// Blocks are persistent.
//
// Tile: 64 keys (32 for D = 128): 4 KiB of K codes, 4 KiB of V codes, 8 KiB of
// V in FP16. Shared memory (dynamic), in this order: the ring's tiles of
// each kind, Q, ones, the key groups' partial results, barriers (struct Shared).
// Registers: consumers 112 (scores 32, O 36, weights 16 for D = 64), producers 32.
// Bound by: exp (16 a cycle and SM).
// The rows' maximum is a reference that moves only when a score exceeds it by
// 2^8: weights up to 256 are fine in FP16, and O is almost never rescaled. For D =
// 64, V has 8 columns of ones behind it, so that P·V sums the weights too.
// Heads whose scales allow scores beyond what FP8 products resolve take exact
// scores, and one product at a time (hopper.cuh).
// D = 64 or 128, causal or not. sm_90a alone.
// Measured (H200, graph replay, µs, L2 warm): mission 6.7, batch512 6.9, long 20.1, big
// 119; with exact scores mission 7.7, long 32.5, big 224 (214 if one lane arrived for
// its warp on every tile, an order that racecheck does not see). With stores of 4
// bytes, not 8, long took 0.8 and big 5 more. Profile at big (an earlier version, 132
// µs): special-function units 59 %, issue slots 55 %, tensor cores 47 % busy, DRAM 4 %;
// at mission 25, 48 and 15 %. Tried without gain: warpgroups that begin their products
// in turns; producer warps with tiles of their own (long 31.5).
//
// Launch: any grid (best: as many blocks as SMs, or fewer if there is less
// work), block 640, dynamic shared memory up to the end of Shared.

#include "barrier.cuh"
#include "hopper.cuh"

#ifndef NUM_STAGES
#define NUM_STAGES 8
#endif

constexpr int CONSUMERS = 4; // warpgroups
constexpr int THREADS = 128 * (CONSUMERS + 1);

// Tiles in the ring, a power of two. For D = 64 a warpgroup asks for its next tile
// before it gives this one back; for D = 128 it does not, and the partial
// results take more room.
static_assert(NUM_STAGES >= 2 * CONSUMERS, "four key groups hold four tiles and wait for four");
__device__ constexpr int stages(int D) { return D == 64 ? NUM_STAGES : NUM_STAGES / 2; }

struct Problem {
    const uint8_t *q, *k, *v;
    const float *q_scale, *k_scale, *v_scale;
    __half* o;
    int B, H, S;
    bool causal;
    int row_groups; // of 64 queries

    __device__ __forceinline__ int rows() const { return 64 * row_groups; }
    __device__ __forceinline__ int blocks() const { return (S + rows() - 1) / rows(); }
    __device__ __forceinline__ int work() const { return B * H * blocks(); }
    // Long rows first where causal makes rows of different length.
    __device__ __forceinline__ int block(int work) const { return causal ? blocks() - 1 - work % blocks() : work % blocks(); }
    __device__ __forceinline__ int end(int block) const { return causal ? min(S, (block + 1) * rows()) : S; }
};

// The largest tile of queries that still gives most SMs something to do.
__device__ __forceinline__ int choose_row_groups(int heads, int S) {
    int tiles = (S + 63) / 64;
    if (heads * ((tiles + 3) / 4) >= 3 * 128) return 4;
    if (heads * ((tiles + 1) / 2) >= 96) return 2;
    return 1;
}

struct Shared {
    uint32_t k, v, v_codes, q, ones, partial, full, empty;
    __device__ __forceinline__ Shared(uint32_t at, int D) {
        k = at;
        v = k + stages(D) * TILE;
        v_codes = v + stages(D) * 2 * TILE;
        q = v_codes + stages(D) * TILE;
        ones = q + CONSUMERS * 64 * D;
        partial = ones + (D == 64 ? 2 * TILE : 0);
        full = partial + (CONSUMERS - 1) * 128 * (D / 2 + 4) * 4;
        empty = full + 8 * stages(D);
    }
};

template <int D>
__device__ __forceinline__ void produce(const Problem& p, const Shared& shared) {
    constexpr int KEYS = TILE / D, AHEAD = stages(D) / 2;
    int thread = threadIdx.x % 128;
    Ring<stages(D)> ring, ready;
    int ahead = 0; // tiles that are copied and not yet decoded

    // A thread decodes what it copied itself, so that only its own copies count.
    auto hand_over = [&]() {
#pragma unroll
        for (int i = 0; i < TILE / 16 / 128; i++) {
            int piece = thread + 128 * i;
            uint4 x;
            asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(shared.v_codes + ready.stage() * TILE + 16 * piece) : "memory");
            decode_piece<D>(shared.v + ready.stage() * 2 * TILE, x, piece);
        }
        fence_to_tensor_cores();
        barrier_arrive(shared.full + 8 * ready.stage());
        ready.next();
    };

    for (int work = blockIdx.x; work < p.work(); work += gridDim.x) {
        size_t base = (size_t)(work / p.blocks()) * p.S * D;
        int end = p.end(p.block(work));
        for (int key = 0; key < end; key += KEYS, ring.next()) {
            if (!barrier_over(shared.empty + 8 * ring.stage(), ring.parity() ^ 1)) {
                // The consumers may wait for the very tiles that are held back here.
                wait_copies<0>();
                for (; ahead > 0; ahead--) hand_over();
                barrier_wait(shared.empty + 8 * ring.stage(), ring.parity() ^ 1);
            }
            copy_codes<D, 128>(shared.k + ring.stage() * TILE, p.k + base, key, p.S, thread);
#pragma unroll
            for (int i = 0; i < TILE / 16 / 128; i++) {
                int piece = thread + 128 * i, row = key + piece / (D / 16);
                copy16_async(shared.v_codes + ring.stage() * TILE + 16 * piece, p.v + base + (row < p.S ? row * D + piece % (D / 16) * 16 : 0), row < p.S);
            }
            commit_copies();
            if (ahead == AHEAD) {
                wait_copies<AHEAD>();
                hand_over();
            } else {
                ahead++;
            }
        }
    }
    wait_copies<0>();
    for (; ahead > 0; ahead--) hand_over();
}

// Brings a warpgroup's 64 queries into shared memory.
template <int D>
__device__ __forceinline__ void load_queries(uint32_t to, const uint8_t* q, int first, int S, int group) {
    constexpr int CHUNKS = D / 16;
#pragma unroll
    for (int i = 0; i < CHUNKS / 2; i++) {
        int piece = threadIdx.x % 128 + 128 * i, row = piece / CHUNKS, chunk = piece % CHUNKS;
        copy16_async(to + code_at<D>(row, chunk), q + (first + row < S ? first + row : 0) * D + 16 * chunk, first + row < S);
    }
    commit_copies();
    wait_copies<0>();
    fence_to_tensor_cores();
    asm volatile("bar.sync %0, 128;" ::"r"(group + 8) : "memory");
}

template <int D>
__device__ __forceinline__ void consume(const Problem& p, const Shared& shared) {
    constexpr int KEYS = TILE / D, STAGES = stages(D);
    int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0), row_group = group % p.row_groups, key_group = group / p.row_groups;
    int key_groups = CONSUMERS / p.row_groups;
    int lane = threadIdx.x % 32;
    uint32_t before = 0; // tiles of the work items before this one

    for (int work = blockIdx.x; work < p.work(); work += gridDim.x) {
        int head = work / p.blocks(), block = p.block(work);
        int first = block * p.rows() + row_group * 64, first_row = first + threadIdx.x / 32 % 4 * 16;
        float v_scale = p.v_scale[head % p.H];
        float scale = softmax_scale_log2(p.q_scale[head % p.H], p.k_scale[head % p.H], D);
        uint64_t q = codes_operand<D>(shared.q + group * 64 * D), k = codes_operand<D>(shared.k);
        load_queries<D>(shared.q + group * 64 * D, p.q + (size_t)head * p.S * D, first, p.S, group);

        float o[D == 64 ? 36 : 64], s[KEYS / 2], top[2] = {LOWEST, LOWEST}, sum[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < (D == 64 ? 36 : 64); i++) o[i] = 0;

        // Tile t of this item has number before + t in the ring. With causal,
        // the last tiles may be for the other rows alone.
        int tiles = (p.end(block) + KEYS - 1) / KEYS;
        int needed = p.causal ? min(tiles, (first + 63) / KEYS + 1) : tiles;
        int t = key_group;
        uint32_t number = before + t;
        uint32_t weights[KEYS / 4];
        bool exact = needs_exact_scores(scale);
        if (D == 64 && !exact && t < needed) {
            barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
            begin_scores<D>(s, q, operand_after(k, number % STAGES * TILE));
            wgmma_wait<0>();
            hold(s);
            mask_scores<D>(s, t * KEYS, first_row, p.S, p.causal);
            float rescale[2];
            to_weights<D == 128>(s, top, sum, rescale, scale);
            pack(weights, s);

            // This tile's Q·Kᵀ and the last one's P·V run together, and P·V runs
            // on while the weights are computed.
            for (t += key_groups; t < needed; t += key_groups) {
                uint32_t last = number % STAGES;
                number += key_groups;
                barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
                begin_scores<D>(s, q, operand_after(k, number % STAGES * TILE));
                add_values<D>(o, weights, values_and_ones_operand(shared.v + last * 2 * TILE, shared.ones));
                wgmma_wait<1>();
                hold(s);
                mask_scores<D>(s, t * KEYS, first_row, p.S, p.causal);
                bool moved = to_weights<D == 128>(s, top, sum, rescale, scale);
                if (moved) {
                    wgmma_wait<0>();
                    hold(o);
#pragma unroll
                    for (int i = 0; i < 36; i++) o[i] *= rescale[i / 2 % 2];
                }
                wgmma_wait<0>();
                hold(o);
                if (lane == 0) barrier_arrive_for_warp(shared.empty + last * 8);
                pack(weights, s);
            }
            add_values<D>(o, weights, values_and_ones_operand(shared.v + number % STAGES * 2 * TILE, shared.ones));
            wgmma_wait<0>();
            hold(o);
            if (lane == 0) barrier_arrive_for_warp(shared.empty + number % STAGES * 8);
            number += key_groups;
        }
        // Neither for D = 128 nor for exact scores are there registers for two products at a time.
        for (; (D == 128 || exact) && t < needed; t += key_groups, number += key_groups) {
            barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
            if (D == 64 || exact) {
                exact_scores<D>(s, shared.q + group * 64 * D, shared.k + number % STAGES * TILE);
            } else {
                begin_scores<D>(s, q, operand_after(k, number % STAGES * TILE));
                wgmma_wait<0>();
            }
            hold(s);
            mask_scores<D>(s, t * KEYS, first_row, p.S, p.causal);
            float rescale[2];
            if (to_weights<D == 128>(s, top, sum, rescale, scale)) {
#pragma unroll
                for (int i = 0; i < (D == 64 ? 36 : 64); i++) o[i] *= rescale[i / 2 % 2];
            }
            pack(weights, s);
            uint32_t v = shared.v + number % STAGES * 2 * TILE;
            add_values<D>(o, weights, D == 64 ? values_and_ones_operand(v, shared.ones) : values_operand<D>(v));
            wgmma_wait<0>();
            hold(o);
            barrier_arrive(shared.empty + number % STAGES * 8); // exact scores are read by all lanes
        }
        for (; t < tiles; t += key_groups, number += key_groups) {
            barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
            if (lane == 0) barrier_arrive_for_warp(shared.empty + number % STAGES * 8);
        }
        before += tiles;
#pragma unroll
        for (int r = 0; r < 2; r++) sum[r] = D == 64 ? o[32 + 2 * r] : quad_sum(sum[r]);

        // The key groups' results meet in group 0.
        if (key_groups > 1) {
            int members = key_groups * 128;
            uint32_t mine = shared.partial + (key_group - 1) * p.row_groups * 128 * (D / 2 + 4) * 4 + (row_group * 128 * (D / 2 + 4) + threadIdx.x % 128) * 4;
            if (key_group > 0) {
#pragma unroll
                for (int i = 0; i < D / 2 + 4; i++) {
                    float x = i < D / 2 ? o[i] : i < D / 2 + 2 ? top[i - D / 2] : sum[i - D / 2 - 2];
                    asm volatile("st.shared.f32 [%0], %1;" ::"r"(mine + i * 512), "f"(x) : "memory");
                }
            }
            asm volatile("bar.sync %0, %1;" ::"r"(row_group + 1), "r"(members) : "memory");
            for (int from = 1; key_group == 0 && from < key_groups; from++) {
                uint32_t theirs = shared.partial + ((from - 1) * p.row_groups + row_group) * 128 * (D / 2 + 4) * 4 + threadIdx.x % 128 * 4;
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    float their_top, their_sum;
                    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(their_top) : "r"(theirs + (D / 2 + r) * 512) : "memory");
                    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(their_sum) : "r"(theirs + (D / 2 + 2 + r) * 512) : "memory");
                    float best = fmaxf(top[r], their_top);
                    float a = exp2_fast((top[r] - best) * scale), b = exp2_fast((their_top - best) * scale);
                    top[r] = best;
                    sum[r] = sum[r] * a + their_sum * b;
#pragma unroll
                    for (int i = 0; i < D / 4; i++) {
                        int at = i / 2 * 4 + 2 * r + i % 2;
                        float x;
                        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(theirs + at * 512) : "memory");
                        o[at] = o[at] * a + x * b;
                    }
                }
            }
            asm volatile("bar.sync %0, %1;" ::"r"(row_group + 1), "r"(members) : "memory");
        }
        if (key_group == 0) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float norm = v_scale / sum[r];
                int row = first_row + lane / 4 + 8 * r;
                if (row >= p.S) continue;
                __half* to = p.o + ((size_t)head * p.S + row) * D + lane % 4 * 4;
#pragma unroll
                for (int i = 0; i < D / 16; i++)
                    *reinterpret_cast<uint2*>(to + 16 * i) = make_uint2(pack_half2(o[8 * i + 2 * r] * norm, o[8 * i + 2 * r + 1] * norm),
                                                                        pack_half2(o[8 * i + 4 + 2 * r] * norm, o[8 * i + 5 + 2 * r] * norm));
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    extern __shared__ __align__(1024) uint8_t room[];
    Shared shared(shared_address(room), D);
    Problem p = {q, k, v, q_scale, k_scale, v_scale, o, B, H, S, causal != 0, choose_row_groups(B * H, S)};
    if (threadIdx.x == 0)
        for (int i = 0; i < stages(D); i++) {
            barrier_init(shared.full + 8 * i, 128);
            barrier_init(shared.empty + 8 * i, 128 * p.row_groups);
        }
    if (D == 64)
        for (int i = threadIdx.x; i < 2 * TILE / 4; i += THREADS) asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared.ones + 4 * i), "r"(0x3c003c00) : "memory");
    fence_to_tensor_cores();
    __syncthreads();

    if (threadIdx.x >= 128 * CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (D == 64) produce<64>(p, shared);
        if (D == 128) produce<128>(p, shared);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
        if (D == 64) consume<64>(p, shared);
        if (D == 128) consume<128>(p, shared);
    }
}
