// Compiles, but no GPU has this much static shared memory: ptxas refuses it.
__global__ void toobig(float* out)
{
    __shared__ float tile[65536];
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[1023 - threadIdx.x];
}
