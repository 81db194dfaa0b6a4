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
// each kind, Q for D = 128, the key groups' partial results, barriers.
// Registers: consumers 112 (scores 32, O 32, weights 16, Q 8), producers 32.
// Bound by: exp (16 a cycle and SM).
// The rows' maximum is a reference that moves only when a score exceeds it by
// 2^8: weights up to 256 are fine in FP16, and O is almost never rescaled.
// D = 64 or 128, causal or not. sm_90a alone.
//
// Launch: any grid (best: as many blocks as SMs, or fewer if there is less
// work), block 640, dynamic shared memory see SHARED.

#include "barrier.cuh"
#include "flash.cuh"
#include "wgmma.cuh"

#ifndef NUM_STAGES
#define NUM_STAGES 8
#endif

constexpr int CONSUMERS = 4; // warpgroups
constexpr int THREADS = 128 * (CONSUMERS + 1);
constexpr int TILE = 4096; // bytes of codes
constexpr float HEADROOM = 8; // powers of two

// Tiles in the ring, and how many are copied ahead of the one being decoded.
// Both are powers of two; for D = 128 the partial results take more room.
__device__ constexpr int stages(int D) { return D == 64 ? NUM_STAGES : NUM_STAGES / 2; }
__device__ constexpr int lookahead(int D) { return stages(D) / 2; }

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
    uint32_t k, v, v_codes, q, partial, full, empty;
    __device__ __forceinline__ Shared(uint32_t at, int D) {
        k = at;
        v = k + stages(D) * TILE;
        v_codes = v + stages(D) * 2 * TILE;
        q = v_codes + stages(D) * TILE;
        partial = q + CONSUMERS * 64 * D;
        full = partial + (CONSUMERS - 1) * 128 * (D / 2 + 4) * 4;
        empty = full + 8 * stages(D);
    }
};

// Decodes this thread's 16 codes of a V tile into the FP16 tile: 128-byte rows
// of 64 columns, swizzled; for D = 128 two such parts.
template <int D>
__device__ __forceinline__ void decode_values(uint32_t to, uint32_t from, int thread) {
    constexpr int CHUNKS = D / 16, KEYS = TILE / D;
#pragma unroll
    for (int i = 0; i < TILE / 16 / 128; i++) {
        int piece = thread + 128 * i, row = piece / CHUNKS, chunk = piece % CHUNKS;
        uint32_t x[4];
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from + 16 * piece) : "memory");
        uint32_t line = to + chunk / 4 * KEYS * 128 + row * 128;
#pragma unroll
        for (int j = 0; j < 2; j++)
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(line + 16 * ((chunk % 4 * 2 + j) ^ row % 8)),
                         "r"(decode_low(x[2 * j])), "r"(decode_high(x[2 * j])), "r"(decode_low(x[2 * j + 1])), "r"(decode_high(x[2 * j + 1])) : "memory");
    }
}

template <int D>
__device__ __forceinline__ void produce(const Problem& p, const Shared& shared) {
    constexpr int CHUNKS = D / 16, KEYS = TILE / D, AHEAD = lookahead(D);
    int thread = threadIdx.x % 128;
    Ring<stages(D)> ring, ready;
    int ahead = 0; // tiles that are copied and not yet decoded

    // A thread decodes what it copied itself, so that only its own copies count.
    auto hand_over = [&]() {
        decode_values<D>(shared.v + ready.stage * 2 * TILE, shared.v_codes + ready.stage * TILE, thread);
        fence_to_tensor_cores();
        __syncwarp();
        if (thread % 32 == 0) barrier_arrive(shared.full + 8 * ready.stage);
        ready.next();
    };

    for (int work = blockIdx.x; work < p.work(); work += gridDim.x) {
        size_t base = (size_t)(work / p.blocks()) * p.S * D;
        int end = p.end(p.block(work));
        for (int key = 0; key < end; key += KEYS, ring.next()) {
            barrier_wait(shared.empty + 8 * ring.stage, ring.parity ^ 1);
#pragma unroll
            for (int i = 0; i < TILE / 16 / 128; i++) {
                int piece = thread + 128 * i, row = piece / CHUNKS, chunk = piece % CHUNKS;
                bool valid = key + row < p.S;
                size_t from = base + (valid ? key + row : 0) * D + 16 * chunk;
                copy16_async(shared.k + ring.stage * TILE + code_at<D>(row, chunk), p.k + from, valid);
                copy16_async(shared.v_codes + ring.stage * TILE + 16 * piece, p.v + from, valid);
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

// s = Q·Kᵀ, begun.
template <int D>
__device__ __forceinline__ void begin_scores(float (&s)[TILE / D / 2], uint32_t q, uint32_t k) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < D / 32; i++) wgmma_scores(s, operand_at<D>(q + 32 * i), operand_at<D>(k + 32 * i), i > 0);
    wgmma_commit();
}

// The maxima of this lane's two rows, over the four lanes that share them. In
// four chains, so that no maximum waits long for another.
template <int N>
__device__ __forceinline__ void row_maxima(const float (&s)[N], float (&best)[2]) {
    float m[4] = {s[0], s[1], s[2], s[3]};
#pragma unroll
    for (int i = 4; i < N; i++) m[i % 4] = fmaxf(m[i % 4], s[i]);
    best[0] = fmaxf(m[0], m[1]), best[1] = fmaxf(m[2], m[3]);
#pragma unroll
    for (int step = 1; step <= 2; step++) {
        float a = __shfl_xor_sync(0xffffffffu, best[0], step), b = __shfl_xor_sync(0xffffffffu, best[1], step);
        best[0] = fmaxf(best[0], a), best[1] = fmaxf(best[1], b);
    }
}

// Takes out the keys that a query may not see.
template <int D>
__device__ __forceinline__ void mask_scores(float (&s)[TILE / D / 2], const Problem& p, int key, int first_row) {
    if (key + TILE / D <= p.S && !(p.causal && key + TILE / D > first_row)) return;
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < TILE / D / 2; i++) {
        int at = key + i / 4 * 8 + lane % 4 * 2 + i % 2, row = first_row + lane / 4 + i / 2 % 2 * 8;
        if (at >= p.S || p.causal && at > row) s[i] = -INFINITY;
    }
}

// Scores become weights relative to top, which moves (and tells so) only when
// some score of the warp is HEADROOM above it; O is to be rescaled then.
template <int N>
__device__ __forceinline__ bool to_weights(float (&s)[N], float (&top)[2], float (&sum)[2], float (&rescale)[2], float scale) {
    float best[2];
    row_maxima(s, best);
    bool moved = (best[0] - top[0]) * scale > HEADROOM || (best[1] - top[1]) * scale > HEADROOM;
    moved = __any_sync(0xffffffffu, moved);
    if (moved) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float next = fmaxf(top[r], best[r]);
            rescale[r] = exp2_fast((top[r] - next) * scale);
            top[r] = next;
            sum[r] *= rescale[r];
        }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float shift = top[r] * scale, part = 0;
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            float &a = s[4 * i + 2 * r], &b = s[4 * i + 2 * r + 1];
            a = exp2_fast(a * scale - shift);
            b = exp2_fast(b * scale - shift);
            part += a + b;
        }
        sum[r] += part;
    }
    return moved;
}

// Weights as FP16, in the order of a product's first operand.
template <int N>
__device__ __forceinline__ void pack(uint32_t (&weights)[N / 2], const float (&s)[N]) {
#pragma unroll
    for (int i = 0; i < N / 2; i++) weights[i] = pack_half2(s[2 * i], s[2 * i + 1]);
}

// o += P·V, begun.
template <int D>
__device__ __forceinline__ void add_values(float (&o)[D / 2], const uint32_t (&weights)[TILE / D / 4], uint32_t v) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < TILE / D / 16; i++)
        wgmma_values(o, {weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3]}, operand_at<128>(v + i * 2048, TILE / D * 128), 1);
    wgmma_commit();
}

template <int D>
__device__ __forceinline__ void consume(const Problem& p, const Shared& shared) {
    constexpr int KEYS = TILE / D, STAGES = stages(D);
    int group = threadIdx.x / 128, row_group = group % p.row_groups, key_group = group / p.row_groups;
    int key_groups = CONSUMERS / p.row_groups;
    int lane = threadIdx.x % 32;
    int before = 0; // tiles of the work items before this one

    for (int work = blockIdx.x; work < p.work(); work += gridDim.x) {
        int head = work / p.blocks(), block = p.block(work);
        int first = block * p.rows() + row_group * 64, first_row = first + threadIdx.x / 32 % 4 * 16;
        float v_scale = p.v_scale[head % p.H];
        float scale = softmax_scale_log2(p.q_scale[head % p.H], p.k_scale[head % p.H], D);
        uint32_t q = shared.q + group * 64 * D;
        load_queries<D>(q, p.q + (size_t)head * p.S * D, first, p.S, group);

        float o[D / 2], s[KEYS / 2], top[2] = {LOWEST, LOWEST}, sum[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < D / 2; i++) o[i] = 0;

        // Tile t of this item has number before + t in the ring. With causal,
        // the last tiles may be for the other rows alone.
        int tiles = (p.end(block) + KEYS - 1) / KEYS;
        int needed = p.causal ? min(tiles, (first + 63) / KEYS + 1) : tiles;
        int t = key_group, number = before + t;
        uint32_t weights[KEYS / 4];
        if (D == 64 && t < needed) {
            barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
            begin_scores<D>(s, q, shared.k + number % STAGES * TILE);
            wgmma_wait<0>();
            hold(s);
            mask_scores<D>(s, p, t * KEYS, first_row);
            float rescale[2];
            to_weights(s, top, sum, rescale, scale);
            pack(weights, s);

            // This tile's Q·Kᵀ and the last one's P·V run together, and P·V runs
            // on while the weights are computed.
            for (t += key_groups; t < needed; t += key_groups) {
                uint32_t v = shared.v + number % STAGES * 2 * TILE, released = shared.empty + number % STAGES * 8;
                number += key_groups;
                barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
                begin_scores<D>(s, q, shared.k + number % STAGES * TILE);
                add_values<D>(o, weights, v);
                wgmma_wait<1>();
                hold(s);
                mask_scores<D>(s, p, t * KEYS, first_row);
                bool moved = to_weights(s, top, sum, rescale, scale);
                wgmma_wait<0>();
                hold(o);
                if (lane == 0) barrier_arrive(released);
                if (moved) {
#pragma unroll
                    for (int i = 0; i < D / 2; i++) o[i] *= rescale[i / 2 % 2];
                }
                pack(weights, s);
            }
            add_values<D>(o, weights, shared.v + number % STAGES * 2 * TILE);
            wgmma_wait<0>();
            hold(o);
            if (lane == 0) barrier_arrive(shared.empty + number % STAGES * 8);
            number += key_groups;
        }
        // For D = 128 there are no registers for two products at a time.
        for (; D == 128 && t < needed; t += key_groups, number += key_groups) {
            barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
            begin_scores<D>(s, q, shared.k + number % STAGES * TILE);
            wgmma_wait<0>();
            hold(s);
            mask_scores<D>(s, p, t * KEYS, first_row);
            float rescale[2];
            if (to_weights(s, top, sum, rescale, scale)) {
#pragma unroll
                for (int i = 0; i < D / 2; i++) o[i] *= rescale[i / 2 % 2];
            }
            pack(weights, s);
            add_values<D>(o, weights, shared.v + number % STAGES * 2 * TILE);
            wgmma_wait<0>();
            hold(o);
            if (lane == 0) barrier_arrive(shared.empty + number % STAGES * 8);
        }
        for (; t < tiles; t += key_groups, number += key_groups) {
            barrier_wait(shared.full + number % STAGES * 8, number / STAGES % 2);
            if (lane == 0) barrier_arrive(shared.empty + number % STAGES * 8);
        }
        before += tiles;

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
                float norm = v_scale / quad_sum(sum[r]);
                int row = first_row + lane / 4 + 8 * r;
                if (row >= p.S) continue;
                __half* to = p.o + ((size_t)head * p.S + row) * D + lane % 4 * 2;
#pragma unroll
                for (int i = 0; i < D / 8; i++)
                    *reinterpret_cast<uint32_t*>(to + 8 * i) = pack_half2(o[4 * i + 2 * r] * norm, o[4 * i + 2 * r + 1] * norm);
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
            barrier_init(shared.full + 8 * i, 4);
            barrier_init(shared.empty + 8 * i, 4 * p.row_groups);
        }
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
