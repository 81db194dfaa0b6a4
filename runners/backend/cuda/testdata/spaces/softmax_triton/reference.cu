// One block of 256 threads for each row.
extern "C" __global__ void reference(const float* x, float* y, int columns)
{
    __shared__ double shared[256];
    const float* row = x + (long long)blockIdx.x * columns;
    double most = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += 256)
        most = fmax(most, (double)row[i]);
    shared[threadIdx.x] = most;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] = fmax(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
    most = shared[0];
    __syncthreads();
    double sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256)
        sum += exp(row[i] - most);
    shared[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += 256)
        y[(long long)blockIdx.x * columns + i] = (float)(exp(row[i] - most) / shared[0]);
}
