// What every stage needs: E4M3 decoding, cp.async, and the small arithmetic
// of an online softmax. Device code only.
#pragma once

#include <cstdint>
#include <cuda_fp16.h>

// Real numbers are decode(code) * scale[head]. Decoding to FP16 is exact, so
// the scales are left out of every inner loop: Q's and K's go into the softmax
// scale, V's into the last division.

constexpr float LOG2E = 1.4426950408889634f;

// Rows start from this maximum and not from -inf, so that -inf - -inf never
// happens; a masked score is -inf and its weight is an exact 0.
constexpr float LOWEST = -1e30f;

// exp(x/√D · scales) as a power of two. A scale of 0 (a tensor of zeros) must
// not turn a masked -inf into NaN.
__device__ __forceinline__ float softmax_scale_log2(float q_scale, float k_scale, int D) {
    return fmaxf(q_scale * k_scale * (D == 64 ? 0.125f : rsqrtf((float)D)), 1e-30f) * LOG2E;
}

// Two E4M3 codes (the low 16 bits) to two FP16.
__device__ __forceinline__ uint32_t decode_low(uint32_t codes) {
    uint32_t halves;
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.rn.f16x2.e4m3x2 %0, lo; }" : "=r"(halves) : "r"(codes));
    return halves;
}

// Two E4M3 codes (the high 16 bits) to two FP16.
__device__ __forceinline__ uint32_t decode_high(uint32_t codes) {
    uint32_t halves;
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.rn.f16x2.e4m3x2 %0, hi; }" : "=r"(halves) : "r"(codes));
    return halves;
}

__device__ __forceinline__ float4 decode4(uint32_t codes) {
    uint32_t lo = decode_low(codes), hi = decode_high(codes);
    float2 a = __half22float2(*reinterpret_cast<__half2*>(&lo));
    float2 b = __half22float2(*reinterpret_cast<__half2*>(&hi));
    return make_float4(a.x, a.y, b.x, b.y);
}

__device__ __forceinline__ uint32_t shared_address(const void* p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ float4 load_shared(uint32_t at) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at) : "memory");
    return x;
}

// 16 bytes from global to shared memory.
__device__ __forceinline__ void copy16_async(uint32_t to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// The same, or 16 zeros when !valid: a key beyond S must decode to 0, because
// 0 · NaN would still be NaN.
__device__ __forceinline__ void copy16_async(uint32_t to, const void* from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's copy groups are under way.
template <int PENDING>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// exp2 of the special-function unit alone: 2 ulp, denormals flushed.
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ uint32_t pack_half2(float lo, float hi) {
    __half2 h = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<uint32_t*>(&h);
}

// Maximum and sum over the four threads that hold one row.
__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
