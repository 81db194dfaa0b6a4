extern "C" __global__ void reference(const float* x, const float* weight, float* y, int C, int R)
{
    const float* row = x + (long)blockIdx.x * C;
    double sum = 0;
    for (int i = 0; i < C; i++)
        sum += (double)row[i] * row[i];
    double scale = 1 / sqrt(sum / C + 1e-6);
    for (int i = threadIdx.x; i < C; i += blockDim.x)
        y[(long)blockIdx.x * C + i] = (float)(row[i] * scale * weight[i]);
}
