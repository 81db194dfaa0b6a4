/*
 * Stage 2: vector units for both Q·Kᵀ and P·V, where a GPU has its tensor cores.
 *
 * Idea       K and V are decoded once per head into panels two vectors wide: K transposed, so that a lane is a key; V
 *            as it is, so that a lane is a column of the output. Both products are then the same micro-kernel: 4 rows
 *            × 2 vectors of sums in registers, a broadcast from the left, a unit-stride panel from the right.
 *            Softmax is vectorised too; log2 e is folded into Q, and exp becomes 2^x by a polynomial.
 * Tiles      4 queries × 2·LANES keys (or columns), LANES = 4, 8 or 16 by machine; the scores and the probabilities of
 *            the four queries are kept whole, in a buffer each.
 * Memory     4·(2·S·D + 8·S + 8·D) bytes, S and D rounded up to 2·LANES: 70 KiB at S=128, D=64, which lives in L2. A
 *            panel of K is 16 KiB at most and stays in L1; a panel of V, S rows long, is read once for four queries.
 * Bound by   the formats: at S=128 with 16 lanes the two products take 1/4 of the time, FP8 decoding and FP16 rounding,
 *            still scalar, 2/3. Their part falls as S grows: they are O(S·D), the products O(S²·D).
 */
#include <math.h>
#include <stdlib.h>

#include "fp8.h"

enum { ROWS = 4, PANEL = 2 * LANES };

void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D);

static size_t round_up(size_t n)
{
    return (n + PANEL - 1) / PANEL * PANEL;
}

/* Key j, element d goes to panel j/PANEL, row d, lane j%PANEL; lanes beyond S stay zero. */
static void decode_k(float *panels, const uint8_t *k, size_t S, size_t D)
{
    for (size_t j = 0; j < S; j++) {
        float *lane = panels + j / PANEL * PANEL * D + j % PANEL;
        for (size_t d = 0; d < D; d++)
            lane[d * PANEL] = e4m3_decode(k[j * D + d]);
    }
}

/* Value j, element d goes to panel d/PANEL, row j, lane d%PANEL; lanes beyond D stay zero. */
static void decode_v(float *panels, const uint8_t *v, size_t S, size_t D)
{
    for (size_t j = 0; j < S; j++)
        for (size_t d = 0; d < D; d++)
            panels[d / PANEL * PANEL * S + j * PANEL + d % PANEL] = e4m3_decode(v[j * D + d]);
}

/* Four rows of out, one panel wide: left (ROWS × depth) times panel (depth × PANEL). */
static void multiply(const float *left, size_t left_stride, const float *panel, size_t depth, float *out,
                     size_t out_stride)
{
    const float *l0 = left, *l1 = l0 + left_stride, *l2 = l1 + left_stride, *l3 = l2 + left_stride;
    vec a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};

    for (size_t i = 0; i < depth; i++, panel += PANEL) {
        vec a = vec_load(panel), b = vec_load(panel + LANES);
        a0 += l0[i] * a;
        b0 += l0[i] * b;
        a1 += l1[i] * a;
        b1 += l1[i] * b;
        a2 += l2[i] * a;
        b2 += l2[i] * b;
        a3 += l3[i] * a;
        b3 += l3[i] * b;
    }

    vec_store(out, a0);
    vec_store(out + LANES, b0);
    vec_store(out + out_stride, a1);
    vec_store(out + out_stride + LANES, b1);
    vec_store(out + 2 * out_stride, a2);
    vec_store(out + 2 * out_stride + LANES, b2);
    vec_store(out + 3 * out_stride, a3);
    vec_store(out + 3 * out_stride + LANES, b3);
}

/* p = 2^(s - max) over one row of S scores; returns the sum. The lanes beyond S are scores of no key: they are
 * overwritten with -inf first. */
static float softmax(float *s, float *p, size_t S, size_t padded)
{
    vec max = vec_splat(-INFINITY), sum = {0};
    float row_max = -INFINITY, row_sum = 0;

    for (size_t j = S; j < padded; j++)
        s[j] = -INFINITY;
    for (size_t j = 0; j < padded; j += LANES)
        max = vec_max(vec_load(s + j), max);
    for (int lane = 0; lane < LANES; lane++)
        row_max = max[lane] > row_max ? max[lane] : row_max;

    for (size_t j = 0; j < padded; j += LANES) {
        vec e = vec_exp2(vec_load(s + j) - row_max);
        vec_store(p + j, e);
        sum += e;
    }
    for (int lane = 0; lane < LANES; lane++)
        row_sum += sum[lane];
    return row_sum;
}

/* Without memory for the panels o stays as it was. */
void sdpa_fp8(const uint8_t *q, const uint8_t *k, const uint8_t *v, const float *q_scale, const float *k_scale,
              const float *v_scale, uint16_t *o, int32_t B, int32_t H, int32_t S, int32_t D)
{
    size_t heads = (size_t)B * (size_t)H, rows = (size_t)S, cols = (size_t)D, head = rows * cols;
    size_t keys = round_up(rows), width = round_up(cols);
    size_t count = keys * cols + rows * width + ROWS * (2 * keys + cols + width);
    float *memory = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);

    if (memory == NULL)
        return;
    memset(memory, 0, count * sizeof(float));
    float *kp = memory, *vp = kp + keys * cols;
    float *s = vp + rows * width, *p = s + ROWS * keys, *sum = p + ROWS * keys, *qt = sum + ROWS * width;

    for (size_t n = 0; n < heads; n++) {
        size_t h = n % (size_t)H;
        float scale = q_scale[h] * k_scale[h] / sqrtf((float)D) * 0x1.715476p0f; /* log2 e */
        decode_k(kp, k + n * head, rows, cols);
        decode_v(vp, v + n * head, rows, cols);

        for (size_t i = 0; i < rows; i += ROWS) {
            size_t live = rows - i < ROWS ? rows - i : ROWS; /* queries beyond S are never stored */
            size_t at = n * head + i * cols;

            for (size_t x = 0; x < live * cols; x++)
                qt[x] = e4m3_decode(q[at + x]) * scale;
            for (size_t j = 0; j < keys; j += PANEL)
                multiply(qt, cols, kp + j * cols, cols, s + j, keys);

            float total[ROWS];
            for (size_t r = 0; r < ROWS; r++)
                total[r] = softmax(s + r * keys, p + r * keys, rows, keys);

            for (size_t d = 0; d < width; d += PANEL)
                multiply(p, keys, vp + d * rows, rows, sum + d, width);
            for (size_t r = 0; r < live; r++)
                for (size_t d = 0; d < cols; d++)
                    o[at + r * cols + d] = f16_from_float(sum[r * width + d] * (v_scale[h] / total[r]));
        }
    }
    free(memory);
}
