#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// A block computes 64 × 64 elements of c, from tiles of 64 × 16 and 16 × 64.
extern "C" __global__ void __launch_bounds__(128) matmul(const __half *__restrict__ a, const __half *__restrict__ b, float *__restrict__ c, int N) {
    __shared__ __align__(32) __half left[64][24], right[16][72];
    int row = blockIdx.y * 64, column = blockIdx.x * 64;
#if SLOW
    float sums[8][4] = {};
    int r = threadIdx.x / 16 * 8, k4 = threadIdx.x % 16 * 4;
#else
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4];
    for (auto &s : sums)
        wmma::fill_fragment(s, 0.f);
    int warp = threadIdx.x / 32;
#endif
    for (int k = 0; k < N; k += 16) {
        *reinterpret_cast<float4 *>(&left[threadIdx.x / 2][threadIdx.x % 2 * 8]) = *reinterpret_cast<const float4 *>(&a[(size_t)(row + threadIdx.x / 2) * N + k + threadIdx.x % 2 * 8]);
        *reinterpret_cast<float4 *>(&right[threadIdx.x / 8][threadIdx.x % 8 * 8]) = *reinterpret_cast<const float4 *>(&b[(size_t)(k + threadIdx.x / 8) * N + column + threadIdx.x % 8 * 8]);
        __syncthreads();
#if SLOW
        for (int j = 0; j < 16; j++)
            for (int m = 0; m < 8; m++)
                for (int n = 0; n < 4; n++)
                    sums[m][n] += __half2float(left[r + m][j]) * __half2float(right[j][k4 + n]);
#else
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
        wmma::load_matrix_sync(x, &left[warp * 16][0], 24);
        for (int n = 0; n < 4; n++) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
            wmma::load_matrix_sync(y, &right[0][n * 16], 72);
            wmma::mma_sync(sums[n], x, y, sums[n]);
        }
#endif
        __syncthreads();
    }
#if SLOW
    for (int m = 0; m < 8; m++)
        for (int n = 0; n < 4; n++)
            c[(size_t)(row + r + m) * N + column + k4 + n] = sums[m][n];
#else
    for (int n = 0; n < 4; n++)
        wmma::store_matrix_sync(&c[(size_t)(row + warp * 16) * N + column + n * 16], sums[n], N, wmma::mem_row_major);
#endif
}
