// The callers spill nothing; the function they call does, and only the function's own block says so.
// The bystander calls nothing and must not inherit it.
__device__ __noinline__ float gather(const float* in, int lane)
{
    float v[160];
#pragma unroll
    for (int i = 0; i < 160; i++)
        v[i] = in[lane + i * 32];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 160; i++)
        sum += v[i] * v[(i * 37 + 11) % 160];
    return sum;
}

__global__ void __launch_bounds__(1024, 1) caller(const float* in, float* out)
{
    out[threadIdx.x] = gather(in, threadIdx.x);
}

__global__ void bystander(const float* in, float* out)
{
    out[threadIdx.x] = 2 * in[threadIdx.x];
}

__global__ void __launch_bounds__(1024, 1) twice(const float* in, float* out)
{
    out[threadIdx.x] = gather(in, threadIdx.x) + gather(in, threadIdx.x + 1);
}
