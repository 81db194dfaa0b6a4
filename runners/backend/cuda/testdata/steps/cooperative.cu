// Both halves in one kernel, whose blocks wait for each other between them.
#include <cooperative_groups.h>
#include <math_constants.h>

__global__ void decode_grid(const float *q, const float *k, const float *v, float *o, int H, int S, float scale, float *partial, float *lse)
{
    constexpr int D = 64;
    __shared__ float sums[D / 32];
    const int part = blockIdx.x, h = blockIdx.y, d = threadIdx.x;
    const int each = (S + SPLITS - 1) / SPLITS, from = part * each, to = min(S, from + each);
    const float mine = q[h * D + d] * scale;
    float most = -CUDART_INF_F, sum = 0, out = 0;
    for (int s = from; s < to; s++) {
        float dot = mine * k[((size_t)h * S + s) * D + d];
        for (int lane = 16; lane; lane /= 2)
            dot += __shfl_xor_sync(~0u, dot, lane);
        if (d % 32 == 0)
            sums[d / 32] = dot;
        __syncthreads();
        float score = 0;
        for (int w = 0; w < D / 32; w++)
            score += sums[w];
        __syncthreads();
        const float top = fmaxf(most, score), keep = __expf(most - top), weight = __expf(score - top);
        sum = sum * keep + weight;
        out = out * keep + weight * v[((size_t)h * S + s) * D + d];
        most = top;
    }
    partial[((size_t)part * H + h) * D + d] = sum > 0 ? out / sum : 0;
    if (d == 0)
        lse[part * H + h] = sum > 0 ? most + logf(sum) : -CUDART_INF_F;
    cooperative_groups::this_grid().sync();
    if (part != 0)
        return;
    most = -CUDART_INF_F, sum = 0, out = 0;
    for (int p = 0; p < SPLITS; p++)
        most = fmaxf(most, lse[p * H + h]);
    for (int p = 0; p < SPLITS; p++) {
        const float weight = __expf(lse[p * H + h] - most);
        sum += weight;
        out += weight * partial[((size_t)p * H + h) * D + d];
    }
    o[h * D + d] = out / sum;
}
