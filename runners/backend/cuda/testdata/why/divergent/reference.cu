#include "ways.cuh"

extern "C" __global__ void reference(const float *x, float *y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        y[i] = way(i % 4, fminf(fmaxf(x[i], -1.f), 1.f));
}
