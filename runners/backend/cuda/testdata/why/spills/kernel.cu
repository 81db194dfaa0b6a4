// Each thread keeps 64 values and mixes them with each other.
extern "C" __global__ void __launch_bounds__(256, SLOW ? 8 : 2) mix(const float *__restrict__ x, float *__restrict__ y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float v[64], start = x[i];
#pragma unroll
    for (int k = 0; k < 64; k++)
        v[k] = start * (k + 1) * (1.f / 64);
#pragma unroll 1
    for (int round = 0; round < 16; round++) {
#pragma unroll
        for (int k = 0; k < 64; k++)
            v[k] = v[k] * 0.5f + v[(k + 17) % 64] * 0.25f;
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 64; k++)
        sum += v[k];
    y[i] = sum;
}
