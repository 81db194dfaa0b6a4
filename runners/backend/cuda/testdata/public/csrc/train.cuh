// Kernels in a header, whose element type is a macro's choice: a norm that leaves its statistics, a softmax that
// writes the lower triangle alone, and an embedding of tokens and positions.
#pragma once
#include "../common/warp.cuh"

#ifdef USE_BF16
typedef __nv_bfloat16 real;
#else
typedef float real;
#endif

__global__ void layernorm_forward(real* __restrict__ out, float* __restrict__ mean, float* __restrict__ rstd, const real* __restrict__ inp,
                                  const real* __restrict__ weight, const real* __restrict__ bias, int N, int C)
{
    extern __shared__ float rows[];
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= N)
        return;
    float *mine = rows + threadIdx.y * C, sum = 0;
    for (int c = threadIdx.x; c < C; c += 32)
        sum += mine[c] = (float)inp[(size_t)row * C + c];
    float m = warp_sum(sum) / C, square = 0;
    for (int c = threadIdx.x; c < C; c += 32)
        square += (mine[c] - m) * (mine[c] - m);
    float s = rsqrtf(warp_sum(square) / C + 1e-5f);
    for (int c = threadIdx.x; c < C; c += 32)
        out[(size_t)row * C + c] = (real)((mine[c] - m) * s * (float)weight[c] + (float)bias[c]);
    if (threadIdx.x == 0 && mean)
        mean[row] = m;
    if (threadIdx.x == 0 && rstd)
        rstd[row] = s;
}

// Right of the diagonal nothing is written.
__global__ void causal_softmax(real* out, float inv_temperature, const real* inp, int N, int T)
{
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N * T)
        return;
    const real* x = inp + (size_t)row * T;
    int last = row % T;
    float most = -INFINITY, sum = 0;
    for (int i = lane; i <= last; i += 32)
        most = fmaxf(most, (float)x[i]);
    most = warp_max(most);
    for (int i = lane; i <= last; i += 32)
        sum += expf(inv_temperature * ((float)x[i] - most));
    sum = warp_sum(sum);
    for (int i = lane; i <= last; i += 32)
        out[(size_t)row * T + i] = (real)(expf(inv_temperature * ((float)x[i] - most)) / sum);
}

__global__ void embed_forward(real* out, const int* tokens, const real* wte, const real* wpe, int B, int T, int C)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= B * T * C)
        return;
    int place = i / C, c = i % C;
    out[i] = (real)((float)wte[(size_t)tokens[place] * C + c] + (float)wpe[(size_t)(place % T) * C + c]);
}
