extern "C" __global__ void reference(const float *q, const float *k, const float *v, float *o, int S, float scale)
{
    // A warp is one row of a head of 64: a lane holds two of its elements.
    const int D = 64;
    int head = blockIdx.y, row = head * S + blockIdx.x, lane = threadIdx.x;
    const float *keys = k + (size_t)head * S * D, *values = v + (size_t)head * S * D;
    float a = 0, b = 0, most = -INFINITY, weight = 0;
    float qa = q[(size_t)row * D + lane], qb = q[(size_t)row * D + 32 + lane];
    for (int j = 0; j < S; j++) {
        float score = qa * keys[(size_t)j * D + lane] + qb * keys[(size_t)j * D + 32 + lane];
        for (int far = 16; far; far /= 2) score += __shfl_xor_sync(~0u, score, far);
        score *= scale;
        float now = fmaxf(most, score), shrink = expf(most - now), p = expf(score - now);
        weight = weight * shrink + p;
        a = a * shrink + p * values[(size_t)j * D + lane];
        b = b * shrink + p * values[(size_t)j * D + 32 + lane];
        most = now;
    }
    o[(size_t)row * D + lane] = a / weight;
    o[(size_t)row * D + 32 + lane] = b / weight;
}
