/*
 * The answer that every stage is compared with: O = softmax(Q·Kᵀ/√D)·V in float64, as the formula is written.
 *
 * Inputs are real numbers, [B,H,S,D] contiguous. The row's maximum is subtracted before exp, which changes nothing
 * in the quotient and keeps exp from overflowing. Speed is of no interest here.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void sdpa_reference(const double *q, const double *k, const double *v, double *o, int32_t B, int32_t H, int32_t S,
                    int32_t D);

static void attend(const double *q, const double *k, const double *v, double *o, double *p, size_t S, size_t D)
{
    for (size_t i = 0; i < S; i++) {
        double max = -INFINITY;
        for (size_t j = 0; j < S; j++) {
            p[j] = 0;
            for (size_t d = 0; d < D; d++)
                p[j] += q[i * D + d] * k[j * D + d];
            p[j] /= sqrt((double)D);
            max = fmax(max, p[j]);
        }

        double sum = 0;
        for (size_t j = 0; j < S; j++) {
            p[j] = exp(p[j] - max);
            sum += p[j];
        }

        for (size_t d = 0; d < D; d++) {
            o[i * D + d] = 0;
            for (size_t j = 0; j < S; j++)
                o[i * D + d] += p[j] / sum * v[j * D + d];
        }
    }
}

/* Without memory for one row of scores o stays as it was. */
void sdpa_reference(const double *q, const double *k, const double *v, double *o, int32_t B, int32_t H, int32_t S,
                    int32_t D)
{
    size_t heads = (size_t)B * (size_t)H, head = (size_t)S * (size_t)D;
    double *p = malloc((size_t)S * sizeof *p);

    if (p == NULL)
        return;
    for (size_t n = 0; n < heads; n++)
        attend(q + n * head, k + n * head, v + n * head, o + n * head, p, (size_t)S, (size_t)D);
    free(p);
}
