// The reference: attention in FP32 on real numbers, as the formula is written.
// One warp for one query; keys in order; three passes over them (maximum, sum,
// output), every score computed anew. Slow and plain on purpose.
//
// Launch: grid ceildiv(B*H*S, 4), block 128. Any B, H, S; D a multiple of 32
// up to 128. No shared memory.

#include <cstdint>

__device__ __forceinline__ float score(const float* q, const float* k, int lane, int D) {
    float sum = 0;
    for (int d = lane; d < D; d += 32) sum += q[d] * k[d];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum / sqrtf((float)D);
}

extern "C" __global__ void __launch_bounds__(128)
sdpa_reference(const float* q, const float* k, const float* v, float* o, int B, int H, int S, int D, int causal) {
    long long query = (long long)blockIdx.x * 4 + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (query >= (long long)B * H * S) return;

    long long head = query / S;
    int keys = causal ? (int)(query % S) + 1 : S;
    q += query * D;
    k += head * S * D;
    v += head * S * D;

    float top = -INFINITY;
    for (int j = 0; j < keys; j++) top = fmaxf(top, score(q, k + (long long)j * D, lane, D));

    float sum = 0;
    for (int j = 0; j < keys; j++) sum += expf(score(q, k + (long long)j * D, lane, D) - top);

    float out[4] = {};
    for (int j = 0; j < keys; j++) {
        float weight = expf(score(q, k + (long long)j * D, lane, D) - top) / sum;
        for (int i = 0; i < 4; i++)
            if (lane + 32 * i < D) out[i] += weight * v[(long long)j * D + lane + 32 * i];
    }
    for (int i = 0; i < 4; i++)
        if (lane + 32 * i < D) o[query * D + lane + 32 * i] = out[i];
}
