/*
 * Stage 0: scalar. The formula, one element at a time: the baseline of everything that follows.
 *
 * Idea       for each query: a row of S scores, softmax over it, a weighted sum of V. Every operand is decoded from
 *            FP8 where it is used, so K and V are decoded once per query: S times over.
 * Tiles      none; V is read down its columns, one byte of every D.
 * Memory     one row of S floats.
 * Bound by   decoding: two conversions for each multiply-add of Q·Kᵀ, one for each of P·V, and an addition that waits
 *            for the one before.
 */
#include <math.h>
#include <stdlib.h>

#include "fp8.h"

void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D);

/* Without memory for the row of scores o stays as it was. */
void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D)
{
    size_t heads = (size_t)B * (size_t)H, rows = (size_t)S, cols = (size_t)D;
    float *p = malloc(rows * sizeof *p);

    if (p == NULL)
        return;
    for (size_t n = 0; n < heads; n++) {
        size_t h = n % (size_t)H, head = n * rows * cols;

        for (size_t i = 0; i < rows; i++) {
            float max = -INFINITY;
            for (size_t j = 0; j < rows; j++) {
                float sum = 0;
                for (size_t d = 0; d < cols; d++) {
                    float a = e4m3_decode(q[head + i * cols + d]) * q_scale[h];
                    float b = e4m3_decode(k[head + j * cols + d]) * k_scale[h];
                    sum += a * b;
                }
                p[j] = sum / sqrtf((float)D);
                if (p[j] > max)
                    max = p[j];
            }

            float total = 0;
            for (size_t j = 0; j < rows; j++) {
                p[j] = expf(p[j] - max);
                total += p[j];
            }

            for (size_t d = 0; d < cols; d++) {
                float sum = 0;
                for (size_t j = 0; j < rows; j++)
                    sum += p[j] * (e4m3_decode(v[head + j * cols + d]) * v_scale[h]);
                o[head + i * cols + d] = f16_from_float(sum / total);
            }
        }
    }
    free(p);
}
