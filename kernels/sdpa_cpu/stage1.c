/*
 * Stage 1: better memory access. What cp.async and double buffering do for a GPU, decoding ahead does here: the inner
 * loops find their operands ready, in the order in which they are used.
 *
 * Idea       Q, K and V of a head are decoded once into contiguous float tiles, the scales and 1/√D folded in. Four
 *            queries share each row of K and V that is read, and every inner loop runs at unit stride.
 * Tiles      4 queries × all S keys; the four rows of scores are kept whole.
 * Memory     4·(3·S·D + 4·S + 4·D) bytes: 99 KiB at S=128, D=64. It lives in L2; K and V stream through L1.
 * Bound by   scalar multiply-adds: one element an instruction, and in P·V a load and a store of each sum besides.
 */
#include <math.h>
#include <stdlib.h>

#include "fp8.h"

enum { ROWS = 4 };

void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D);

static void decode(float *tile, const uint8_t *codes, float scale, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tile[i] = e4m3_decode(codes[i]) * scale;
}

/* p[r] = q[r]·Kᵀ for four rows. */
static void scores(const float *q, const float *k, float *p, size_t S, size_t D)
{
    for (size_t j = 0; j < S; j++, k += D) {
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (size_t d = 0; d < D; d++) {
            s0 += q[d] * k[d];
            s1 += q[D + d] * k[d];
            s2 += q[2 * D + d] * k[d];
            s3 += q[3 * D + d] * k[d];
        }
        p[j] = s0;
        p[S + j] = s1;
        p[2 * S + j] = s2;
        p[3 * S + j] = s3;
    }
}

static void softmax(float *p, size_t S)
{
    float max = -INFINITY, total = 0;
    for (size_t j = 0; j < S; j++)
        if (p[j] > max)
            max = p[j];
    for (size_t j = 0; j < S; j++) {
        p[j] = expf(p[j] - max);
        total += p[j];
    }
    for (size_t j = 0; j < S; j++)
        p[j] /= total;
}

/* sum[r] = p[r]·V for four rows. */
static void weigh(const float *p, const float *v, float *sum, size_t S, size_t D)
{
    memset(sum, 0, ROWS * D * sizeof *sum);
    for (size_t j = 0; j < S; j++, v += D) {
        float p0 = p[j], p1 = p[S + j], p2 = p[2 * S + j], p3 = p[3 * S + j];
        for (size_t d = 0; d < D; d++) {
            sum[d] += p0 * v[d];
            sum[D + d] += p1 * v[d];
            sum[2 * D + d] += p2 * v[d];
            sum[3 * D + d] += p3 * v[d];
        }
    }
}

/* Without memory for the tiles o stays as it was. */
void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D)
{
    size_t heads = (size_t)B * (size_t)H, rows = (size_t)S, cols = (size_t)D, head = rows * cols;
    size_t padded = (rows + ROWS - 1) / ROWS * ROWS; /* queries beyond S are zero, and never stored */
    float *tiles = calloc(padded * cols + 2 * head + ROWS * (rows + cols), sizeof *tiles);

    if (tiles == NULL)
        return;
    float *qf = tiles, *kf = qf + padded * cols, *vf = kf + head, *p = vf + head, *sum = p + ROWS * rows;

    for (size_t n = 0; n < heads; n++) {
        size_t h = n % (size_t)H;
        decode(qf, q + n * head, q_scale[h] * k_scale[h] / sqrtf((float)D), head);
        decode(kf, k + n * head, 1.0f, head);
        decode(vf, v + n * head, v_scale[h], head);

        for (size_t i = 0; i < rows; i += ROWS) {
            scores(qf + i * cols, kf, p, rows, cols);
            for (size_t r = 0; r < ROWS; r++)
                softmax(p + r * rows, rows);
            weigh(p, vf, sum, rows, cols);

            size_t live = (rows - i < ROWS ? rows - i : ROWS) * cols;
            for (size_t x = 0; x < live; x++)
                o[n * head + i * cols + x] = f16_from_float(sum[x]);
        }
    }
    free(tiles);
}
