// Static shared memory shows in the log; the dynamic part is the launch's and does not.
// Two blocks of 1024 threads do not fit every SM: there ptxas warns that it ignores the bound.
extern __shared__ float dynamic[];

__global__ void __launch_bounds__(1024, 2) tile(const float* in, float* out, int n)
{
    __shared__ float rows[32][33];
    rows[threadIdx.y][threadIdx.x] = in[threadIdx.y * n + threadIdx.x];
    dynamic[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x * n + threadIdx.y] = rows[threadIdx.x][threadIdx.y] * dynamic[threadIdx.y];
}
