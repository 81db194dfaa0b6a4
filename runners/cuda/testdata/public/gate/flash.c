#include <math.h>
#include <stdint.h>

void flash_reference(const double *q, const double *k, const double *v, const double *starts, double *o, int64_t B, int64_t H, int64_t HK, int64_t D)
{
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++) {
            double *out = o + (b * H + h) * D, most = -INFINITY, sum = 0;
            for (int64_t d = 0; d < D; d++)
                out[d] = 0;
            for (int64_t t = (int64_t)starts[b]; t < (int64_t)starts[b + 1]; t++) {
                const double *key = k + (t * HK + h / (H / HK)) * D, *value = v + (t * HK + h / (H / HK)) * D;
                double dot = 0;
                for (int64_t d = 0; d < D; d++)
                    dot += q[(b * H + h) * D + d] * key[d];
                dot /= sqrt(D);
                double now = fmax(most, dot), keep = exp(most - now), p = exp(dot - now);
                for (int64_t d = 0; d < D; d++)
                    out[d] = out[d] * keep + p * value[d];
                sum = sum * keep + p, most = now;
            }
            for (int64_t d = 0; d < D; d++)
                out[d] = sum > 0 ? out[d] / sum : 0;
        }
}
