// Stage 1, cp.async: as stage 0, but the codes of the next K and V tile are on
// their way into a second buffer while this tile is computed.
//
// Tile: 32 queries x 32 keys, 128 threads, work split as in stage 0.
// Shared memory (static): Q 8.5 KiB, K 8.5, V 8.5 (floats), scores 4.5,
// codes of K and V 2 x 2 x 2 KiB.
// Registers: at most 128 (96 on sm_89, 105 on sm_90).
// Bound by: shared-memory bandwidth of the two products.
// D = 64, non-causal.
// Measured (H200, graph replay, µs, L2 warm/flushed): mission 45.2/45.7 (+7.7 %
// over stage 0, +25 % flushed), batch512 73.7/74.0, long 511: there is little
// latency to hide when everything is in L2. Profile at mission: shared-memory pipe
// 63 %, issue slots 34 %.
//
// Launch: grid ceildiv(S, 32)*H*B, block 128.

#include "scalar.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 4)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    __shared__ __align__(16) float q_tile[TILE_ROWS * PITCH], k_tile[TILE_KEYS * PITCH], v_tile[TILE_KEYS * PITCH];
    __shared__ __align__(16) uint8_t k_raw[2][TILE_KEYS * HEAD_DIM], v_raw[2][TILE_KEYS * HEAD_DIM];
    __shared__ float scores[TILE_ROWS * SCORE_PITCH];

    int tiles = (S + TILE_ROWS - 1) / TILE_ROWS;
    int head = blockIdx.x / tiles, first_row = blockIdx.x % tiles * TILE_ROWS;
    size_t base = (size_t)head * S * HEAD_DIM;
    float scale = softmax_scale_log2(q_scale[head % H], k_scale[head % H], HEAD_DIM);
    int row = threadIdx.x / 4, quarter = threadIdx.x % 4;

    copy_rows(k_raw[0], k + base, 0, S);
    copy_rows(v_raw[0], v + base, 0, S);
    commit_copies();
    decode_rows(q_tile, q + base, first_row, S);

    float out[16] = {}, top = LOWEST, sum = 0;
    for (int key = 0, buffer = 0; key < S; key += TILE_KEYS, buffer ^= 1) {
        wait_copies<0>();
        __syncthreads();
        if (key + TILE_KEYS < S) {
            copy_rows(k_raw[buffer ^ 1], k + base, key + TILE_KEYS, S);
            copy_rows(v_raw[buffer ^ 1], v + base, key + TILE_KEYS, S);
            commit_copies();
        }
        decode_tile(k_tile, k_raw[buffer]);
        decode_tile(v_tile, v_raw[buffer]);
        __syncthreads();
        score_tile(scores, q_tile, k_tile, key, S, scale);
        __syncthreads();

        float weight[TILE_KEYS / 4];
#pragma unroll
        for (int j = 0; j < TILE_KEYS / 4; j++) weight[j] = scores[row * SCORE_PITCH + quarter + 4 * j];
        float rescale = softmax_quarter(weight, top, sum);
#pragma unroll
        for (int j = 0; j < TILE_KEYS / 4; j++) scores[row * SCORE_PITCH + quarter + 4 * j] = weight[j];
        __syncwarp();

#pragma unroll
        for (int i = 0; i < 16; i++) out[i] *= rescale;
#pragma unroll 4
        for (int j = 0; j < TILE_KEYS; j++) {
            float p = scores[row * SCORE_PITCH + j];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float4 x = *reinterpret_cast<const float4*>(v_tile + j * PITCH + 16 * i + 4 * quarter);
                out[4 * i] += p * x.x;
                out[4 * i + 1] += p * x.y;
                out[4 * i + 2] += p * x.z;
                out[4 * i + 3] += p * x.w;
            }
        }
    }

    if (first_row + row >= S) return;
    float norm = v_scale[head % H] / sum;
    __half* to = o + base + (size_t)(first_row + row) * HEAD_DIM + 4 * quarter;
#pragma unroll
    for (int i = 0; i < 16; i++) to[i / 4 * 16 + i % 4] = __float2half_rn(out[i] * norm);
}
