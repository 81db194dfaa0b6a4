// A vector times a matrix of four-bit blocks: the vector is quantised first, into blocks of bytes. Enumerators choose the
// format, what is divided by comes as a multiplication and a shift, and what might be fused comes in a struct of pointers.
#include "../common/warp.cuh"

enum block_type { BLOCK_F16, BLOCK_Q4, BLOCK_Q8 };
enum glu_kind { GLU_NONE, GLU_SILU };

struct block_q4 {
    __half d;
    uint8_t qs[16];
};
struct block_q8 {
    __half2 ds; // the scale, and the sum of what was quantised
    int8_t qs[32];
};
static_assert(sizeof(block_q4) == 18 && sizeof(block_q8) == 36, "no padding");

struct fusion_args {
    const void* bias = nullptr;
    const void* gate = nullptr;
    const void* gate_bias = nullptr;
    glu_kind glu;
};

static __device__ uint32_t fast_div(uint32_t n, const uint3 by) { return (__umulhi(n, by.x) + n) >> by.y; }

__launch_bounds__(256, 1) static __global__ void quantize_q8(const float* __restrict__ x, void* __restrict__ vy, const int64_t columns, const int64_t stride)
{
    int64_t i = (int64_t)blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= columns)
        return;
    float v = x[blockIdx.y * stride + i];
    float most = warp_max(fabsf(v)), sum = warp_sum(v), d = most / 127;
    block_q8& to = ((block_q8*)vy)[(blockIdx.y * columns + i) / 32];
    to.qs[i % 32] = most == 0 ? 0 : roundf(v / d);
    if (i % 32 == 0)
        to.ds = __floats2half2_rn(d, sum);
}

template <block_type type, int columns_of_y, bool fused>
__launch_bounds__(4 * 32, 1) static __global__ void mul_mat_vec(const void* __restrict__ vx, const void* __restrict__ vy, const int32_t* __restrict__ ids, const fusion_args fusion,
                                                               float* __restrict__ dst, const uint32_t columns, const uint3 channel_ratio, const uint32_t stride_row,
                                                               const uint32_t stride_channel_x, const uint32_t stride_channel_y, const uint32_t stride_channel_dst)
{
    static_assert(type == BLOCK_Q4 && columns_of_y == 1, "other formats are elsewhere");
    __shared__ float warps[4];
    int row = blockIdx.x, channel = blockIdx.y, thread = threadIdx.y * 32 + threadIdx.x;
    int from = ids ? ids[channel] : fast_div(channel, channel_ratio);
    const block_q4* x = (const block_q4*)vx + from * stride_channel_x + row * stride_row;
    const block_q8* y = (const block_q8*)vy + channel * stride_channel_y;
    float sum = 0;
    for (int b = thread; b < columns / 32; b += 128) {
        int dot = 0;
        for (int i = 0; i < 16; i++)
            dot += (x[b].qs[i] & 15) * y[b].qs[i] + (x[b].qs[i] >> 4) * y[b].qs[i + 16];
        sum += __half2float(x[b].d) * (dot * __low2float(y[b].ds) - 8 * __high2float(y[b].ds));
    }
    if (fused && fusion.bias && thread == 0)
        sum += ((const float*)fusion.bias)[row];
    sum = warp_sum(sum);
    if (threadIdx.x == 0)
        warps[threadIdx.y] = sum;
    __syncthreads();
    if (thread == 0)
        dst[channel * stride_channel_dst + row] = warps[0] + warps[1] + warps[2] + warps[3];
}
