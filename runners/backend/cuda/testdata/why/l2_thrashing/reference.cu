extern "C" __global__ void reference(const float *x, float *y, int P, int L) {
    int pass = blockIdx.x / P, part = blockIdx.x % P;
    __shared__ float sums[256];
    float sum = 0;
    for (int i = threadIdx.x; i < L; i += 256)
        sum += x[(size_t)part * L + i] * (pass + 1);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
        if (threadIdx.x < k)
            sums[threadIdx.x] += sums[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        y[pass * P + part] = sums[0];
}
