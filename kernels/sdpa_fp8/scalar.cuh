// Q·Kᵀ on the FP32 units, for stages 0 to 3a: tiles of decoded floats in
// shared memory, and the score buffer. 128 threads, D = 64.
#pragma once

#include "common.cuh"

constexpr int HEAD_DIM = 64;
constexpr int TILE_ROWS = 32; // queries of a block
constexpr int TILE_KEYS = 32; // keys of a step
constexpr int THREADS = 128;
constexpr int PITCH = HEAD_DIM + 4;        // floats: rows of 16-byte vectors on different banks
constexpr int SCORE_PITCH = TILE_KEYS + 4; // floats

// Where a 4-float chunk of a row lies: padded rows, or unpadded rows whose
// chunks are exchanged by XOR.
template <bool XOR>
__device__ __forceinline__ int chunk_at(int row, int chunk) {
    return XOR ? row * HEAD_DIM + 4 * (chunk ^ (row & 15)) : row * PITCH + 4 * chunk;
}

// Decodes 32 rows of codes from global memory; rows from S on become 0.
template <bool XOR = false>
__device__ __forceinline__ void decode_rows(float* tile, const uint8_t* codes, int first, int S) {
    for (int i = threadIdx.x; i < TILE_ROWS * HEAD_DIM / 4; i += THREADS) {
        int row = i / (HEAD_DIM / 4), chunk = i % (HEAD_DIM / 4);
        uint32_t four = 0;
        if (first + row < S) four = *reinterpret_cast<const uint32_t*>(codes + (size_t)(first + row) * HEAD_DIM + 4 * chunk);
        *reinterpret_cast<float4*>(tile + chunk_at<XOR>(row, chunk)) = decode4(four);
    }
}

// Starts the copy of 32 rows of codes (2 KiB): one 16-byte piece a thread.
__device__ __forceinline__ void copy_rows(uint8_t* raw, const uint8_t* codes, int first, int S) {
    int row = threadIdx.x / 4, piece = threadIdx.x % 4;
    bool valid = first + row < S;
    copy16_async(shared_address(raw + row * HEAD_DIM + 16 * piece), codes + (size_t)(valid ? first + row : 0) * HEAD_DIM + 16 * piece, valid);
}

// Decodes a tile of codes that lies in shared memory.
template <bool XOR = false>
__device__ __forceinline__ void decode_tile(float* tile, const uint8_t* raw) {
    for (int i = threadIdx.x; i < TILE_KEYS * HEAD_DIM / 4; i += THREADS) {
        int row = i / (HEAD_DIM / 4), chunk = i % (HEAD_DIM / 4);
        *reinterpret_cast<float4*>(tile + chunk_at<XOR>(row, chunk)) = decode4(reinterpret_cast<const uint32_t*>(raw)[i]);
    }
}

// scores = Q·Kᵀ, scaled to powers of two. A thread makes 2 rows x 4 keys, so
// that 6 vector loads feed 32 multiply-adds.
template <bool XOR = false>
__device__ __forceinline__ void score_tile(float* scores, const float* q, const float* k, int first_key, int S, float scale) {
    int row = threadIdx.x / 8 * 2, key = threadIdx.x % 8;
    float acc[2][4] = {};
#pragma unroll 4
    for (int chunk = 0; chunk < HEAD_DIM / 4; chunk++) {
        float4 a[2], b[4];
#pragma unroll
        for (int i = 0; i < 2; i++) a[i] = *reinterpret_cast<const float4*>(q + chunk_at<XOR>(row + i, chunk));
#pragma unroll
        for (int j = 0; j < 4; j++) b[j] = *reinterpret_cast<const float4*>(k + chunk_at<XOR>(key + 8 * j, chunk));
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                acc[i][j] += a[i].x * b[j].x + a[i].y * b[j].y + a[i].z * b[j].z + a[i].w * b[j].w;
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            scores[(row + i) * SCORE_PITCH + key + 8 * j] = first_key + key + 8 * j < S ? acc[i][j] * scale : -INFINITY;
}

// The online softmax of one row, a quarter of it in each of four threads:
// scores become weights, and the row's maximum and sum move on. Returns what
// the sums so far must be multiplied by.
__device__ __forceinline__ float softmax_quarter(float (&s)[TILE_KEYS / 4], float& top, float& sum) {
    float best = s[0];
#pragma unroll
    for (int j = 1; j < TILE_KEYS / 4; j++) best = fmaxf(best, s[j]);
    best = fmaxf(top, quad_max(best));
    float rescale = exp2f(top - best), part = 0;
#pragma unroll
    for (int j = 0; j < TILE_KEYS / 4; j++) {
        s[j] = exp2f(s[j] - best);
        part += s[j];
    }
    sum = sum * rescale + quad_sum(part);
    top = best;
    return rescale;
}
