#include <stdint.h>

void gemm_reference(uint8_t tiler, const double *A, int32_t dA, uint8_t layoutA, const double *B, int32_t dB, uint8_t layoutB, double *C, int32_t dC, uint8_t threads,
                    float alpha, float beta, int64_t M, int64_t N, int64_t K)
{
    (void)tiler, (void)layoutA, (void)layoutB, (void)threads;
    for (int64_t n = 0; n < N; n++)
        for (int64_t m = 0; m < M; m++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += A[k * dA + m] * B[k * dB + n];
            C[n * dC + m] = alpha * sum + beta * C[n * dC + m];
        }
}
