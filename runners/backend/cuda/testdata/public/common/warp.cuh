// What all of the kernels share, in a folder of its own.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ inline float warp_sum(float v)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lanes);
    return v;
}

__device__ inline float warp_max(float v)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lanes));
    return v;
}
