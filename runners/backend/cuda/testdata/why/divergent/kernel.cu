#include "ways.cuh"

extern "C" __global__ void ways(const float *__restrict__ x, float *__restrict__ y, int N) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int i = blockIdx.x * 128 + (SLOW ? threadIdx.x : lane * 4 + warp);
    if (i < N)
        y[i] = way(i % 4, fminf(fmaxf(x[i], -1.f), 1.f));
}
