// One block of 256 threads for each row.
extern "C" __global__ void reference(const float* x, const float* weight, float* y, int rows, int columns)
{
    __shared__ double sums[256];
    const float* row = x + (long long)blockIdx.x * columns;
    double sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256)
        sum += (double)row[i] * row[i];
    sums[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    const double scale = 1 / sqrt(sums[0] / columns + 1e-6);
    for (int i = threadIdx.x; i < columns; i += 256)
        y[(long long)blockIdx.x * columns + i] = (float)(row[i] * scale * weight[i]);
}
