#include <cuda_fp16.h>

extern "C" __global__ void conv1d(const __half* x, const __half* weight, __half* y, int C, int L)
{
    long row = (long)blockIdx.y * C + blockIdx.x;
    float w[4];
    for (int k = 0; k < 4; k++)
        w[k] = __half2float(weight[blockIdx.x * 4 + k]);
    for (int i = threadIdx.x; i < L; i += BLOCK) {
        float sum = 0;
        for (int k = 0; k < 4; k++)
            if (i + k >= 3)
                sum += w[k] * __half2float(x[row * L + i + k - 3]);
        y[row * L + i] = __float2half(sum);
    }
}
