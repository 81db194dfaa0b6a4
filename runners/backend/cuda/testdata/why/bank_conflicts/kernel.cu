// A transpose through shared memory.
extern "C" __global__ void transpose(const float *__restrict__ x, float *__restrict__ y, int N) {
    __shared__ float tile[32][SLOW ? 32 : 33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        tile[threadIdx.y + i][threadIdx.x] = x[(size_t)(row + i) * N + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        y[(size_t)(row + i) * N + column] = tile[threadIdx.x][threadIdx.y + i];
}
