// P·V on tensor cores through WMMA, for stages 2 and 3a: O is a tile of floats
// in shared memory.
#pragma once

#include <mma.h>

#include "scalar.cuh"

constexpr int V_PITCH = HEAD_DIM + 8;  // halves
constexpr int P_PITCH = TILE_KEYS + 8; // halves, where the weights have a buffer of their own

// Codes of V in shared memory to FP16.
__device__ __forceinline__ void decode_values(__half* tile, const uint8_t* raw) {
    for (int i = threadIdx.x; i < TILE_KEYS * HEAD_DIM / 4; i += THREADS) {
        int row = i / (HEAD_DIM / 4), chunk = i % (HEAD_DIM / 4);
        uint32_t codes = reinterpret_cast<const uint32_t*>(raw)[i];
        *reinterpret_cast<uint2*>(tile + row * V_PITCH + 4 * chunk) = make_uint2(decode_low(codes), decode_high(codes));
    }
}

__device__ __forceinline__ void clear_output(float* o_tile) {
    for (int i = threadIdx.x; i < TILE_ROWS * PITCH; i += THREADS) o_tile[i] = 0;
}

// Multiplies the 16 columns of O that this thread holds of its row.
__device__ __forceinline__ void rescale_output(float* o_tile, int row, int quarter, float by) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float4* at = reinterpret_cast<float4*>(o_tile + row * PITCH + 16 * i + 4 * quarter);
        float4 x = *at;
        *at = make_float4(x.x * by, x.y * by, x.z * by, x.w * by);
    }
}

// O += P·V. A warp owns a 16-column strip of O, both 16-row tiles of it.
template <int WEIGHT_PITCH>
__device__ __forceinline__ void accumulate(float* o_tile, const __half* weights, const __half* v_tile) {
    using namespace nvcuda::wmma;
    int column = threadIdx.x / 32 * 16;
    fragment<matrix_b, 16, 16, 16, __half, row_major> b[TILE_KEYS / 16];
#pragma unroll
    for (int j = 0; j < TILE_KEYS / 16; j++) load_matrix_sync(b[j], v_tile + 16 * j * V_PITCH + column, V_PITCH);
#pragma unroll
    for (int i = 0; i < TILE_ROWS / 16; i++) {
        fragment<accumulator, 16, 16, 16, float> sum;
        load_matrix_sync(sum, o_tile + 16 * i * PITCH + column, PITCH, mem_row_major);
#pragma unroll
        for (int j = 0; j < TILE_KEYS / 16; j++) {
            fragment<matrix_a, 16, 16, 16, __half, row_major> a;
            load_matrix_sync(a, weights + 16 * i * WEIGHT_PITCH + 16 * j, WEIGHT_PITCH);
            mma_sync(sum, a, b[j], sum);
        }
        store_matrix_sync(o_tile + 16 * i * PITCH + column, sum, PITCH, mem_row_major);
    }
}

__device__ __forceinline__ void store_output(__half* o, const float* o_tile, int first_row, int S, int row, int quarter, float norm) {
    if (first_row + row >= S) return;
    __half* to = o + (size_t)(first_row + row) * HEAD_DIM;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int column = 16 * i + 4 * quarter;
        float4 x = *reinterpret_cast<const float4*>(o_tile + row * PITCH + column);
        *reinterpret_cast<uint2*>(to + column) = make_uint2(pack_half2(x.x * norm, x.y * norm), pack_half2(x.z * norm, x.w * norm));
    }
}
