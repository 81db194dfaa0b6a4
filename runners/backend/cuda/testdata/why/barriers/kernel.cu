extern "C" __global__ void __launch_bounds__(1024) iterate(const float *__restrict__ x, float *__restrict__ y, int N) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    float v = i < N ? x[i] : 0;
#pragma unroll 1
    for (int k = 0; k < 64; k++) {
        v = v * 0.99f + 0.01f;
        v = v * 0.98f + 0.02f;
#if SLOW
        __syncthreads();
#endif
    }
    if (i < N)
        y[i] = v;
}
