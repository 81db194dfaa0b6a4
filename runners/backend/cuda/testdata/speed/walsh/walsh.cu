extern "C" __global__ void walsh(const float* x, float* y)
{
    __shared__ float v[1024];
    const float* row = x + (long)blockIdx.x * 1024;
    for (int i = threadIdx.x; i < 1024; i += BLOCK)
        v[i] = row[i];
    for (int half = 512; half; half /= 2) {
        __syncthreads();
        for (int i = threadIdx.x; i < 512; i += BLOCK) {
            int a = i / half * 2 * half + i % half, b = a + half;
            float u = v[a], w = v[b];
            v[a] = u + w;
            v[b] = u - w;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += BLOCK)
        y[(long)blockIdx.x * 1024 + i] = v[i];
}
