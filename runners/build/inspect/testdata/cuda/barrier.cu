// Has a barrier that only a part of the block comes to.
extern "C" __global__ void scale(const float *x, float *y, int N)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < N ? x[i] : 0;
    if (threadIdx.x % 32 < 20) {
        tile[threadIdx.x] *= 2;
        __syncthreads(); // the mistake
    } else {
        tile[threadIdx.x] += tile[threadIdx.x];
    }
    if (i < N)
        y[i] = tile[threadIdx.x];
}
