// The flash-attention step of one warpgroup on wgmma: 64 queries against a tile
// of K codes and decoded V in shared memory, with scores, weights and output in
// registers. A lane = 4*g + t of warp w holds rows 16*w + g and + 8, of every 8
// columns 2t and 2t+1; scores and output alike.
#pragma once

#include "flash.cuh"
#include "wgmma.cuh"

static_assert(USE_XOR_SWIZZLE, "the tensor cores read swizzled tiles");

constexpr int TILE = 4096;    // bytes of codes: 64 keys for D = 64, 32 for D = 128
constexpr float HEADROOM = 8; // powers of two that a score may be above its row's reference

// Decodes 16 codes of V, chunk piece of a tile in the order of memory, into the
// FP16 tile: 128-byte rows of 64 columns, swizzled; for D = 128 two such parts.
// Of every 16 columns, 4t and 4t+1 go first and 4t+2 and 4t+3 after them, so
// that a lane's columns of two neighbouring tiles of O are 4 neighbours.
template <int D>
__device__ __forceinline__ void decode_piece(uint32_t tile, uint4 codes, int piece) {
    int row = piece / (D / 16), chunk = piece % (D / 16);
    uint32_t line = tile + chunk / 4 * (TILE / D) * 128 + row * 128;
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(line + 16 * (chunk % 4 * 2 ^ row % 8)),
                 "r"(decode_low(codes.x)), "r"(decode_low(codes.y)), "r"(decode_low(codes.z)), "r"(decode_low(codes.w)) : "memory");
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(line + 16 * ((chunk % 4 * 2 + 1) ^ row % 8)),
                 "r"(decode_high(codes.x)), "r"(decode_high(codes.y)), "r"(decode_high(codes.z)), "r"(decode_high(codes.w)) : "memory");
}

// Starts the copy of a tile of K codes, swizzled, by THREADS threads.
template <int D, int THREADS>
__device__ __forceinline__ void copy_codes(uint32_t tile, const uint8_t* k, int first, int S, int thread) {
#pragma unroll
    for (int i = 0; i < TILE / 16 / THREADS; i++) {
        int piece = thread + THREADS * i, row = piece / (D / 16), chunk = piece % (D / 16);
        bool valid = first + row < S;
        copy16_async(tile + code_at<D>(row, chunk), k + (valid ? first + row : 0) * D + 16 * chunk, valid);
    }
}

// Operands of the products: Q or K codes, and V in FP16.
template <int D>
__device__ __forceinline__ uint64_t codes_operand(uint32_t at) {
    return operand_at<D>(at);
}

template <int D>
__device__ __forceinline__ uint64_t values_operand(uint32_t at) {
    return operand_at<128>(at, TILE / D * 128);
}

// V for D = 64, followed by 8 columns of ones that lie elsewhere: the product
// with P then ends with the sums of the weights.
__device__ __forceinline__ uint64_t values_and_ones_operand(uint32_t at, uint32_t ones) {
    return operand_at<128>(at, ones - at);
}

// FP8 wgmma aligns the products of a sum to the largest one and keeps some 13 bits
// below it: a score is wrong by up to 2^-11.5 of what the largest product can
// be (H200, seen as max |err| 0.39 at inputs of sigma 8). Where the scales allow one
// product to move an exponent by more than this, the scores are computed exactly.
constexpr float MOST_INEXACT = 8;

__device__ __forceinline__ bool needs_exact_scores(float scale) { return scale * (448.f * 448.f) > MOST_INEXACT; }

// s = Q·Kᵀ of each warp's 16 queries, with FP16 products and FP32 sums: codes become
// operands as in flash.cuh, with few registers rather than fast.
template <int D, int KEYS = TILE / D>
__device__ __forceinline__ void exact_scores(float (&s)[KEYS / 2], uint32_t q, uint32_t k_tile) {
    asm volatile("" : "+r"(q), "+r"(k_tile)); // no address is kept in a register from tile to tile
    uint32_t queries = q + code_at<D>(threadIdx.x / 32 % 4 * 16 + threadIdx.x % 16, threadIdx.x % 32 / 16), keys = k_tile + code_at<D>(threadIdx.x % 32, 0);
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) s[i] = 0;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        uint32_t a[4];
        load_matrices(a, queries ^ i / 2 * 32);
        uint32_t rows[4] = {decode_low(a[i % 2 * 2]), decode_low(a[i % 2 * 2 + 1]), decode_high(a[i % 2 * 2]), decode_high(a[i % 2 * 2 + 1])};
#pragma unroll
        for (int j = 0; j < KEYS / 32; j++) {
            uint32_t b[4];
            load_matrices(b, (keys ^ 16 * i) + 32 * j * D);
#pragma unroll
            for (int n = 0; n < 4; n++) mma_f16(reinterpret_cast<float(&)[4]>(s[16 * j + 4 * n]), rows, decode_low(b[n]), decode_high(b[n]));
        }
    }
}

// s = Q·Kᵀ, begun.
template <int D>
__device__ __forceinline__ void begin_scores(float (&s)[TILE / D / 2], uint64_t q, uint64_t k) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < D / 32; i++) wgmma_scores(s, operand_after(q, 32 * i), operand_after(k, 32 * i), i > 0);
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
__device__ __forceinline__ void mask_scores(float (&s)[TILE / D / 2], int key, int first_row, int S, bool causal) {
    if (key + TILE / D <= S && !(causal && key + TILE / D > first_row)) return;
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < TILE / D / 2; i++) {
        int at = key + i / 4 * 8 + lane % 4 * 2 + i % 2, row = first_row + lane / 4 + i / 2 % 2 * 8;
        if (at >= S || causal && at > row) s[i] = -INFINITY;
    }
}

// Scores become weights relative to top, which moves (and tells so) only when
// some score of the warp is HEADROOM above it; O is to be rescaled then.
// SUM: the weights are also summed here; else the product with V does it.
template <bool SUM, int N>
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
        float shift = top[r] * scale;
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
            float &a = s[4 * i + 2 * r], &b = s[4 * i + 2 * r + 1];
            a = exp2_fast(a * scale - shift);
            b = exp2_fast(b * scale - shift);
            if (SUM) sum[r] += a + b;
        }
    }
    hold(s); // computed before whatever is waited for next
    return moved;
}

// Weights as FP16, in the order of a product's first operand.
template <int N>
__device__ __forceinline__ void pack(uint32_t (&weights)[N / 2], const float (&s)[N]) {
#pragma unroll
    for (int i = 0; i < N / 2; i++) weights[i] = pack_half2(s[2 * i], s[2 * i + 1]);
}

// o += P·V, begun.
template <int D, int N>
__device__ __forceinline__ void add_values(float (&o)[N], const uint32_t (&weights)[TILE / D / 4], uint64_t v) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < TILE / D / 16; i++)
        wgmma_values(o, {weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3]}, operand_after(v, 2048 * i), 1);
    wgmma_commit();
}
