extern "C" __global__ void gemm_reference(unsigned char tiler, const float *A, int dA, unsigned char layoutA, const float *B, int dB, unsigned char layoutB, float *C, int dC,
                                          unsigned char threads, float alpha, float beta, long long M, long long N, long long K)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, m = i % M, n = i / M;
    if (n >= N)
        return;
    double sum = 0;
    for (long long k = 0; k < K; k++)
        sum += (double)A[k * dA + m] * B[k * dB + n];
    C[n * dC + m] = alpha * sum + beta * C[n * dC + m];
}
