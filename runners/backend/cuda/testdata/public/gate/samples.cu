extern "C" __global__ void transpose_reference(float *odata, const float *idata, int width, int height)
{
    long long y = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    for (long long x = 0; y < height && x < width; x++)
        odata[x * height + y] = idata[y * width + x];
}

// One block, in double.
extern "C" __global__ void sum_reference(const float *idata, float *sum, unsigned n)
{
    __shared__ double found[1024];
    double mine = 0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        mine += idata[i];
    found[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (unsigned i = 1; i < blockDim.x; i++)
        mine += found[i];
    *sum = mine;
}
