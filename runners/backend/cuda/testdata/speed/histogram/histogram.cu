extern "C" __global__ void histogram(const int* keys, int* counts, int N)
{
    __shared__ int own[256];
    for (int i = threadIdx.x; i < 256; i += BLOCK)
        own[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < N; i += gridDim.x * BLOCK)
        atomicAdd(&own[keys[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += BLOCK)
        if (own[i])
            atomicAdd(&counts[i], own[i]);
}
