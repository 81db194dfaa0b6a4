#include <cuda_fp16.h>

// One block takes ROWS rows; each thread reads WIDTH neighbours at a time.
struct alignas(2 * WIDTH) Pack { __half v[WIDTH]; };

extern "C" __global__ void rms_norm(const __half* x, const __half* weight, __half* y, int C, int R)
{
    __shared__ float sums[BLOCK / 32];
    for (int k = 0; k < ROWS; k++) {
        long row = (long)blockIdx.x * ROWS + k;
        if (row >= R)
            return;
        const Pack* from = (const Pack*)(x + row * C);
        float sum = 0;
        for (int i = threadIdx.x; i < C / WIDTH; i += BLOCK) {
            Pack p = from[i];
            for (int j = 0; j < WIDTH; j++) {
                float v = __half2float(p.v[j]);
                sum += v * v;
            }
        }
        for (int lane = 16; lane; lane /= 2)
            sum += __shfl_xor_sync(~0u, sum, lane);
        if (threadIdx.x % 32 == 0)
            sums[threadIdx.x / 32] = sum;
        __syncthreads();
        sum = 0;
        for (int i = 0; i < BLOCK / 32; i++)
            sum += sums[i];
        float scale = rsqrtf(sum / C + 1e-6f);
        for (int i = threadIdx.x; i < C / WIDTH; i += BLOCK) {
            Pack p = from[i], w = ((const Pack*)weight)[i], out;
            for (int j = 0; j < WIDTH; j++)
                out.v[j] = __float2half(__half2float(p.v[j]) * scale * __half2float(w.v[j]));
            ((Pack*)(y + row * C))[i] = out;
        }
        __syncthreads();
    }
}
