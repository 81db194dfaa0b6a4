// RMS norm of each row. A block takes ROWS rows with THREADS threads each, and a thread reads WIDTH neighbours at a time.
constexpr int THREADS = BLOCK / ROWS;
constexpr int LANES = THREADS < 32 ? THREADS : 32; // threads of one warp that share a row
constexpr int WARPS = THREADS / LANES;             // of one row

struct alignas(WIDTH < 4 ? 4 * WIDTH : 16) Pack { float v[WIDTH]; };

extern "C" __global__ void __launch_bounds__(BLOCK) rmsnorm(const float* x, const float* weight, float* y, int rows, int columns)
{
    __shared__ float partial[ROWS * WARPS];
    const long long row = (long long)blockIdx.x * ROWS + threadIdx.y;
    const int packs = row < rows ? columns / WIDTH : 0; // a thread without a row still takes part in the sums
    const Pack* from = (const Pack*)(x + row * columns);
    const Pack* scales = (const Pack*)weight;
    Pack* to = (Pack*)(y + row * columns);

    float sum = 0;
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack p = from[i];
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            sum += p.v[j] * p.v[j];
    }
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (WARPS > 1) {
        if (threadIdx.x % LANES == 0)
            partial[threadIdx.y * WARPS + threadIdx.x / LANES] = sum;
        __syncthreads();
        sum = 0;
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            sum += partial[threadIdx.y * WARPS + i];
    }

    const float scale = rsqrtf(sum / columns + 1e-6f);
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack p = from[i], w = scales[i];
        Pack out;
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            out.v[j] = p.v[j] * scale * w.v[j];
        to[i] = out;
    }
}
