#include <cuda_fp16.h>

extern "C" __global__ void rope(__half* x, const int* positions, int H, int D)
{
    __half* token = x + (long)blockIdx.x * H * D;
    float position = (float)positions[blockIdx.x];
    int half = D / 2;
    for (int i = threadIdx.x; i < H * half; i += BLOCK) {
        int head = i / half, k = i % half;
        float angle = position * exp2f(-13.287712379549449f * k / half), s, c;
        sincosf(angle, &s, &c);
        __half *a = token + head * D + k, *b = a + half;
        float u = __half2float(*a), v = __half2float(*b);
        *a = __float2half(u * c - v * s);
        *b = __float2half(v * c + u * s);
    }
}
