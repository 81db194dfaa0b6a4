extern "C" __global__ void reference(const float* a, const float* b, float* c, int M, int N, int K)
{
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || column >= N)
        return;
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += (double)a[(long long)row * K + k] * b[(long long)k * N + column];
    c[(long long)row * N + column] = (float)sum;
}
