extern "C" __global__ void reference(const float *q, const float *k, const float *v, float *o, int H, int S, float scale)
{
    const int D = 64, h = blockIdx.x, d = threadIdx.x;
    double most = -1e300, sum = 0, out = 0;
    for (int s = 0; s < S; s++) {
        double score = 0;
        for (int c = 0; c < D; c++)
            score += (double)q[h * D + c] * k[((size_t)h * S + s) * D + c];
        score *= scale;
        const double top = fmax(most, score), keep = exp(most - top), weight = exp(score - top);
        sum = sum * keep + weight;
        out = out * keep + weight * v[((size_t)h * S + s) * D + d];
        most = top;
    }
    o[h * D + d] = (float)(out / sum);
}
