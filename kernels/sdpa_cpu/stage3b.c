/*
 * Stage 3B: softmax fused in registers. Deferred: the results are wrong.
 *
 * Idea       no score buffer at all. A lane is a query: the running maximum and the running denominator of LANES
 *            queries are one register each, the scores of four keys are used as soon as they are known, and no sum
 *            ever crosses lanes.
 * Tiles      LANES queries × 4 keys; the output sums, D × LANES, stay in L1.
 * Memory     4·(2·S·D + 2·LANES·D) bytes: 72 KiB at S=128, D=64, LANES=16.
 * Bound by   multiply-adds, and the load and store of the output sums once every four keys.
 *
 * Lesson     a running maximum is a unit of measurement. Whatever was summed before it moved is in the old unit, and
 *            that is everything which was summed, not only what is easy to see. Green before fast: the time of a
 *            kernel that is wrong says nothing.
 */
#include <math.h>
#include <stdlib.h>

#include "fp8.h"

enum { KEYS = 4 };

void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D);

static void decode(float *tile, const uint8_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tile[i] = e4m3_decode(codes[i]);
}

/* LANES queries against the whole head: qt and out are D × LANES; rows of K and V beyond S are zero. Returns the
 * denominators. */
static vec attend(const float *qt, const float *k, const float *v, float *out, size_t S, size_t D)
{
    vec max = vec_splat(-INFINITY), total = {0};

    for (size_t j = 0; j < S; j += KEYS, k += KEYS * D, v += KEYS * D) {
        vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (size_t d = 0; d < D; d++) {
            vec x = vec_load(qt + d * LANES);
            s0 += k[d] * x;
            s1 += k[D + d] * x;
            s2 += k[2 * D + d] * x;
            s3 += k[3 * D + d] * x;
        }
        if (j + 1 >= S)
            s1 = vec_splat(-INFINITY);
        if (j + 2 >= S)
            s2 = vec_splat(-INFINITY);
        if (j + 3 >= S)
            s3 = vec_splat(-INFINITY);

        vec new_max = vec_max(max, vec_max(vec_max(s0, s1), vec_max(s2, s3)));
        vec p0 = vec_exp2(s0 - new_max), p1 = vec_exp2(s1 - new_max);
        vec p2 = vec_exp2(s2 - new_max), p3 = vec_exp2(s3 - new_max);
        total = total * vec_exp2(max - new_max) + (p0 + p1) + (p2 + p3);
        max = new_max;

        for (size_t d = 0; d < D; d++) {
            vec sum = vec_load(out + d * LANES);
            sum += v[d] * p0;
            sum += v[D + d] * p1;
            sum += v[2 * D + d] * p2;
            sum += v[3 * D + d] * p3;
            vec_store(out + d * LANES, sum);
        }
    }
    return total;
}

/* Without memory for the tiles o stays as it was. */
void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D)
{
    size_t heads = (size_t)B * (size_t)H, rows = (size_t)S, cols = (size_t)D, head = rows * cols;
    size_t keys = (rows + KEYS - 1) / KEYS * KEYS, tile = cols * LANES;
    float *memory = calloc(2 * keys * cols + 2 * tile, sizeof *memory);

    if (memory == NULL)
        return;
    float *kf = memory, *vf = kf + keys * cols, *qt = vf + keys * cols, *out = qt + tile;

    for (size_t n = 0; n < heads; n++) {
        size_t h = n % (size_t)H;
        float scale = q_scale[h] * k_scale[h] / sqrtf((float)D) * 0x1.715476p0f; /* log2 e */
        decode(kf, k + n * head, head);
        decode(vf, v + n * head, head);

        for (size_t i = 0; i < rows; i += LANES) {
            size_t live = rows - i < LANES ? rows - i : LANES; /* queries beyond S are never stored */
            size_t at = n * head + i * cols;

            for (size_t r = 0; r < live; r++)
                for (size_t d = 0; d < cols; d++)
                    qt[d * LANES + r] = e4m3_decode(q[at + r * cols + d]) * scale;
            memset(out, 0, tile * sizeof *out);

            vec norm = v_scale[h] / attend(qt, kf, vf, out, rows, cols);
            for (size_t d = 0; d < cols; d++)
                vec_store(out + d * LANES, vec_load(out + d * LANES) * norm);
            for (size_t r = 0; r < live; r++)
                for (size_t d = 0; d < cols; d++)
                    o[at + r * cols + d] = f16_from_float(out[d * LANES + r]);
        }
    }
    free(memory);
}
