// Attention whose kernels all take one large struct by value, which has a base, a struct of another library in it, and more
// pointers than a launch uses. Sequences lie end to end, and what the splits found is combined by a second kernel.
#include <stddef.h>
#include "../common/warp.cuh"

struct philox_state {
    uint64_t seed;
    uint64_t offset;
    uint32_t within;
    bool captured;
};

struct qkv_params {
    using index_t = int64_t;
    void* __restrict__ q_ptr;
    void* __restrict__ k_ptr;
    void* __restrict__ v_ptr;
    index_t q_row_stride, k_row_stride, v_row_stride, q_head_stride, k_head_stride, v_head_stride;
    int h, h_k;
    int ratio;
};

struct forward_params : public qkv_params {
    void* __restrict__ o_ptr;
    void* __restrict__ oaccum_ptr;
    index_t o_row_stride, o_head_stride;
    void* __restrict__ lseaccum_ptr;
    int b, d;
    float scale;
    int* __restrict__ cu_seqlens;
    int* __restrict__ block_table;
    float p_dropout;
    uint8_t p_dropout_in_8_bits;
    philox_state philox;
    uint64_t* rng_state;
    bool is_bf16, is_causal;
    int num_splits;
    void* __restrict__ slopes;
    index_t slopes_stride;
};

static_assert(offsetof(forward_params, o_ptr) == 88, "behind the base");
static_assert(offsetof(forward_params, philox.captured) == 188, "within a struct");
static_assert(offsetof(forward_params, num_splits) == 204, "behind two of one byte");
static_assert(offsetof(forward_params, slopes) == 208, "behind a gap");

namespace flash {
template <int HeadDim, int BlockN, int Warps, typename Element> struct traits {
    using element = Element;
    static constexpr int head = HeadDim, columns = BlockN, threads = 32 * Warps;
};

// One query a head and sequence; every warp of every split takes a key in turn.
template <typename Traits, bool Is_causal, bool Split> __global__ void forward_splitkv(const __grid_constant__ forward_params params)
{
    constexpr int warps = Traits::threads / 32, D = Traits::head;
    using T = typename Traits::element;
    __shared__ float found[warps][D + 2];
    int split = blockIdx.x, sequence = blockIdx.y, head = blockIdx.z, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = params.cu_seqlens[sequence], end = params.cu_seqlens[sequence + 1];
    const T* q = (const T*)params.q_ptr + sequence * params.q_row_stride + head * params.q_head_stride;
    float out[D / 32] = {}, most = -INFINITY, sum = 0;
    for (int key = first + split * warps + warp; key < end; key += gridDim.x * warps) {
        const T* k = (const T*)params.k_ptr + key * params.k_row_stride + head / params.ratio * params.k_head_stride;
        const T* v = (const T*)params.v_ptr + key * params.v_row_stride + head / params.ratio * params.v_head_stride;
        float dot = 0;
        for (int d = lane; d < D; d += 32)
            dot += (float)q[d] * (float)k[d];
        dot = warp_sum(dot) * params.scale;
        float now = fmaxf(most, dot), keep = expf(most - now), p = expf(dot - now);
        for (int i = 0; i < D / 32; i++)
            out[i] = out[i] * keep + p * (float)v[lane + 32 * i];
        sum = sum * keep + p, most = now;
    }
    for (int i = 0; i < D / 32; i++)
        found[warp][lane + 32 * i] = out[i];
    if (lane == 0)
        found[warp][D] = most, found[warp][D + 1] = sum;
    __syncthreads();
    float all = -INFINITY, whole = 0;
    for (int w = 0; w < warps; w++)
        all = fmaxf(all, found[w][D]);
    for (int w = 0; w < warps; w++)
        whole += found[w][D + 1] > 0 ? found[w][D + 1] * expf(found[w][D] - all) : 0;
    int64_t at = ((int64_t)split * params.b + sequence) * params.h + head;
    for (int d = threadIdx.x; d < D; d += Traits::threads) {
        float o = 0;
        for (int w = 0; w < warps; w++)
            o += found[w][D + 1] > 0 ? found[w][d] * expf(found[w][D] - all) : 0;
        ((float*)params.oaccum_ptr)[at * D + d] = whole > 0 ? o / whole : 0;
    }
    if (threadIdx.x == 0)
        ((float*)params.lseaccum_ptr)[at] = whole > 0 ? all + logf(whole) : -INFINITY;
}

template <typename Traits, int Log_max_splits> __global__ void combine(const __grid_constant__ forward_params params)
{
    int sequence = blockIdx.x, head = blockIdx.y;
    const float* lse = (const float*)params.lseaccum_ptr;
    float most = -INFINITY, whole = 0;
    auto at = [&](int split) { return ((int64_t)split * params.b + sequence) * params.h + head; };
    for (int s = 0; s < min(params.num_splits, 1 << Log_max_splits); s++)
        most = fmaxf(most, lse[at(s)]);
    for (int s = 0; s < params.num_splits; s++)
        whole += lse[at(s)] > -INFINITY ? expf(lse[at(s)] - most) : 0;
    for (int d = threadIdx.x; d < Traits::head; d += blockDim.x) {
        float o = 0;
        for (int s = 0; s < params.num_splits; s++)
            o += lse[at(s)] > -INFINITY ? expf(lse[at(s)] - most) * ((const float*)params.oaccum_ptr)[at(s) * Traits::head + d] : 0;
        ((typename Traits::element*)params.o_ptr)[sequence * params.o_row_stride + head * params.o_head_stride + d] = (typename Traits::element)(whole > 0 ? o / whole : 0);
    }
}
} // namespace flash
