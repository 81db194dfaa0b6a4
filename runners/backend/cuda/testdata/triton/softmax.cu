extern "C" __global__ void reference(const float *x, float *y, int rows, int cols)
{
    __shared__ float part[256];
    x += (size_t)blockIdx.x * cols;
    y += (size_t)blockIdx.x * cols;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < cols; i += 256) most = fmaxf(most, x[i]);
    part[threadIdx.x] = most;
    __syncthreads();
    for (int i = 0; i < 256; i++) most = fmaxf(most, part[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += 256) sum += expf(x[i] - most);
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 256; i++) sum += part[i];
    for (int i = threadIdx.x; i < cols; i += 256) y[i] = expf(x[i] - most) / sum;
}
