#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void rms_reference(double *input, int64_t stride, double *residual, const double *weight, float epsilon, int32_t tokens, int32_t hidden)
{
    for (int t = 0; t < tokens; t++) {
        double *x = input + t * stride, *r = residual + (size_t)t * hidden, sum = 0;
        for (int i = 0; i < hidden; i++) {
            r[i] += x[i];
            sum += r[i] * r[i];
        }
        for (int i = 0; i < hidden; i++)
            x[i] = r[i] / sqrt(sum / hidden + epsilon) * weight[i];
    }
}

void rotary_reference(const double *positions, double *query, const double *cos_sin, int32_t rotated, int64_t query_stride, int64_t key_stride, int64_t head_stride,
                      int32_t heads, int32_t kv_heads, int32_t head_size, bool inverse, int64_t T)
{
    (void)key_stride, (void)kv_heads, (void)head_size;
    for (int64_t t = 0; t < T; t++)
        for (int h = 0; h < heads; h++)
            for (int i = 0; i < rotated / 2; i++) {
                const double *angles = cos_sin + (int64_t)positions[t] * rotated;
                double *a = query + t * query_stride + h * head_stride + i, *b = a + rotated / 2;
                double c = angles[i], s = angles[rotated / 2 + i] * (inverse ? -1 : 1), x = *a, y = *b;
                *a = x * c - y * s, *b = y * c + x * s;
            }
}

void paged_reference(double *out, const double *q, const double *keys, const double *values, int32_t kv_heads, float scale, const double *tables, const double *lengths,
                     int32_t pages, int32_t q_stride, int32_t page_stride, int32_t head_stride, int32_t parts_most, int64_t B, int64_t H, int64_t D, int64_t PAGE)
{
    (void)parts_most;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++) {
            double *o = out + (b * H + h) * D, most = -INFINITY, sum = 0;
            const double *query = q + b * q_stride + h * D;
            for (int64_t d = 0; d < D; d++)
                o[d] = 0;
            for (int64_t t = 0; t < (int64_t)lengths[b]; t++) {
                size_t page = (size_t)tables[b * pages + t / PAGE] * page_stride + h / (H / kv_heads) * head_stride;
                double dot = 0;
                for (int64_t d = 0; d < D; d++)
                    dot += query[d] * keys[page + d / 8 * PAGE * 8 + t % PAGE * 8 + d % 8];
                double now = fmax(most, dot * scale), keep = exp(most - now), p = exp(dot * scale - now);
                for (int64_t d = 0; d < D; d++)
                    o[d] = o[d] * keep + p * values[page + d * PAGE + t % PAGE];
                sum = sum * keep + p, most = now;
            }
            for (int64_t d = 0; d < D; d++)
                o[d] /= sum;
        }
}
