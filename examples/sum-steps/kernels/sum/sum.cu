// The sum of an array in two kernels: each block adds its share, and the second kernel adds the blocks.
// BLOCKS is a toggle of the manifest; small arrays have fewer blocks.
__device__ float block_sum(float value)
{
    __shared__ float parts[32];
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffffu, value, step);
    return value;
}

extern "C" __global__ void add_shares(const float *x, float *partial, long long n)
{
    float sum = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
        sum += x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

extern "C" __global__ void add_blocks(const float *partial, float *y, long long n)
{
    float sum = 0;
    for (int i = threadIdx.x; i < BLOCKS && i * 256LL < n; i += blockDim.x)
        sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *y = sum;
}
