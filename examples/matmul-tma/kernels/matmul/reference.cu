extern "C" __global__ void reference(const float *a, const float *b, float *c, int M, int N, int K)
{
    int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= N)
        return;
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += (double)a[(size_t)row * K + k] * b[(size_t)column * K + k];
    c[(size_t)row * N + column] = sum;
}
