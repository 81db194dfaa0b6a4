// A thread for an element of the output, which does all of the softmax by itself.
extern "C" __global__ void flash_reference(const float *q, const float *k, const float *v, const float *starts, float *o, long long B, long long H, long long HK, long long D)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, d = i % D, h = i / D % H, b = i / D / H;
    if (b >= B)
        return;
    double most = -INFINITY, sum = 0, out = 0;
    for (long long t = (long long)starts[b]; t < (long long)starts[b + 1]; t++) {
        const float *key = k + (t * HK + h / (H / HK)) * D;
        float dot = 0;
        for (long long e = 0; e < D; e++)
            dot += q[(b * H + h) * D + e] * key[e];
        double score = dot / sqrt((double)D), now = fmax(most, score), keep = exp(most - now), p = exp(score - now);
        out = out * keep + p * v[(t * HK + h / (H / HK)) * D + d];
        sum = sum * keep + p, most = now;
    }
    o[(b * H + h) * D + d] = sum > 0 ? out / sum : 0;
}
