#define ROW (blockIdx.x * (long long)blockDim.x + threadIdx.x)

extern "C" __global__ void rms_reference(float *input, long long stride, float *residual, const float *weight, float epsilon, int tokens, int hidden)
{
    long long t = ROW;
    if (t >= tokens)
        return;
    float *x = input + t * stride, *r = residual + t * hidden;
    double sum = 0;
    for (int i = 0; i < hidden; i++) {
        r[i] += x[i];
        sum += (double)r[i] * r[i];
    }
    for (int i = 0; i < hidden; i++)
        x[i] = r[i] / sqrt(sum / hidden + epsilon) * weight[i];
}

extern "C" __global__ void rotary_reference(const float *positions, float *query, const float *cos_sin, int rotated, long long query_stride, long long key_stride,
                                            long long head_stride, int heads, int kv_heads, int head_size, bool inverse, long long T)
{
    long long t = ROW / heads, h = ROW % heads;
    for (int i = 0; t < T && i < rotated / 2; i++) {
        const float *angles = cos_sin + (long long)positions[t] * rotated;
        float *a = query + t * query_stride + h * head_stride + i, *b = a + rotated / 2;
        double c = angles[i], s = angles[rotated / 2 + i] * (inverse ? -1 : 1), x = *a, y = *b;
        *a = x * c - y * s, *b = y * c + x * s;
    }
}

// A thread for an element of the output, which does all of the softmax by itself.
extern "C" __global__ void paged_reference(float *out, const float *q, const float *keys, const float *values, int kv_heads, float scale, const float *tables, const float *lengths,
                                           int pages, int q_stride, int page_stride, int head_stride, int parts_most, long long B, long long H, long long D, long long PAGE)
{
    long long d = ROW % D, h = ROW / D % H, b = ROW / D / H;
    if (b >= B)
        return;
    const float *query = q + b * q_stride + h * D;
    double most = -INFINITY, sum = 0, o = 0;
    for (long long t = 0; t < (long long)lengths[b]; t++) {
        long long page = (long long)tables[b * pages + t / PAGE] * page_stride + h / (H / kv_heads) * head_stride;
        float dot = 0;
        for (long long e = 0; e < D; e++)
            dot += query[e] * keys[page + e / 8 * PAGE * 8 + t % PAGE * 8 + e % 8];
        double now = fmax(most, (double)(dot * scale)), keep = exp(most - now), p = exp(dot * scale - now);
        o = o * keep + p * values[page + d * PAGE + t % PAGE];
        sum = sum * keep + p, most = now;
    }
    out[(b * H + h) * D + d] = o / sum;
}
