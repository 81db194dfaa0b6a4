// Reads what another warp writes, without a barrier between them.
extern "C" __global__ void scale(const float *x, float *y, int N)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < N ? x[i] : 0; // the mistake,
    float other = tile[255 - threadIdx.x]; // and its other half
    __syncthreads();
    tile[255 - threadIdx.x] = 2 * other;
    __syncthreads();
    if (i < N)
        y[i] = tile[threadIdx.x];
}
