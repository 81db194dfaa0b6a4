#include <cuda_fp16.h>

extern "C" __global__ void scale(const __half *__restrict__ x, __half *__restrict__ y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if SLOW
    if (i < N)
        y[i] = __hmul(x[i], __float2half(0.5f));
#else
    if (i * 8 >= N)
        return;
    float4 four = reinterpret_cast<const float4 *>(x)[i];
    __half2 *pairs = reinterpret_cast<__half2 *>(&four);
    for (int k = 0; k < 4; k++)
        pairs[k] = __hmul2(pairs[k], __float2half2_rn(0.5f));
    reinterpret_cast<float4 *>(y)[i] = four;
#endif
}
