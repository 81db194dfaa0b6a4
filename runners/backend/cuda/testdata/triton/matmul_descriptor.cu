extern "C" __global__ void reference(const float *a, const float *b, float *c, int k, long long m, long long n)
{
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= m || col >= n) return;
    double sum = 0;
    for (int i = 0; i < k; i++) sum += (double)a[(size_t)row * k + i] * b[(size_t)i * n + col];
    c[(size_t)row * n + col] = sum;
}
