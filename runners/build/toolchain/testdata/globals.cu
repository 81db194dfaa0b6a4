// State that outlives a launch: where a kernel could keep yesterday's result.
__device__ unsigned int launches;
__device__ float cached[256];
static __device__ int hidden = 7;
__constant__ float table[16];

__global__ void remember(float* out, int i)
{
    if (atomicAdd(&launches, 1) > 0)
        out[threadIdx.x] = cached[threadIdx.x] + hidden;
    else
        cached[threadIdx.x] = out[threadIdx.x] = table[i] * sinf(out[threadIdx.x]);
    hidden++;
}
