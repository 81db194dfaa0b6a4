// c = a·b in f32. A block computes TILE_M × TILE_N elements of c, TILE_K products at a time, and a thread 8 × THREAD_N of them.
// The sizes of the problem are multiples of the tile. The largest tile fills the 48 KiB of static shared memory.
constexpr int THREAD_M = 8;
constexpr int ACROSS = TILE_N / THREAD_N;
constexpr int THREADS = ACROSS * (TILE_M / THREAD_M);
constexpr int STEPS = UNROLL; // of the inner loop without a branch

extern "C" __global__ void __launch_bounds__(THREADS) matmul(const float* a, const float* b, float* c, int M, int N, int K)
{
    __shared__ float left[TILE_M][TILE_K], right[TILE_K][TILE_N];
    const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    a += (long long)blockIdx.y * TILE_M * K;
    b += (long long)blockIdx.x * TILE_N;
    c += (long long)blockIdx.y * TILE_M * N + (long long)blockIdx.x * TILE_N;

    float sums[THREAD_M][THREAD_N] = {};
    for (int start = 0; start < K; start += TILE_K) {
#pragma unroll
        for (int i = threadIdx.x; i < TILE_M * TILE_K; i += THREADS)
            left[i / TILE_K][i % TILE_K] = a[(long long)(i / TILE_K) * K + start + i % TILE_K];
#pragma unroll
        for (int i = threadIdx.x; i < TILE_K * TILE_N; i += THREADS)
            right[i / TILE_N][i % TILE_N] = b[(long long)(start + i / TILE_N) * N + i % TILE_N];
        __syncthreads();
#pragma unroll STEPS
        for (int k = 0; k < TILE_K; k++) {
            float l[THREAD_M], r[THREAD_N];
#pragma unroll
            for (int m = 0; m < THREAD_M; m++)
                l[m] = left[ty * THREAD_M + m][k];
#pragma unroll
            for (int n = 0; n < THREAD_N; n++)
                r[n] = right[k][tx + n * ACROSS];
#pragma unroll
            for (int m = 0; m < THREAD_M; m++)
#pragma unroll
                for (int n = 0; n < THREAD_N; n++)
                    sums[m][n] += l[m] * r[n];
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < THREAD_M; m++)
#pragma unroll
        for (int n = 0; n < THREAD_N; n++)
            c[(long long)(ty * THREAD_M + m) * N + tx + n * ACROSS] = sums[m][n];
}
