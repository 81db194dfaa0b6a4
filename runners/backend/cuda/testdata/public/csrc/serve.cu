// Kernels of a server of language models: templates over types, chosen among by what holds of their arguments, with CUB,
// 64-bit strides, a null pointer where there is no key, and a cache in pages whose split needs a second kernel.
#include <cub/block/block_reduce.cuh>
#include <type_traits>
#include "../common/warp.cuh"

namespace serve {
enum class Cache { Same, Packed };

template <typename T> struct widens { static constexpr bool value = sizeof(T) == 2; };

template <typename T, int width> struct alignas(sizeof(T) * width) pack { T v[width]; };

template <typename T, int width>
__global__ std::enable_if_t<(width > 0) && widens<T>::value> fused_add_rms(T* __restrict__ input, const int64_t stride, T* __restrict__ residual,
                                                                          const T* __restrict__ weight, const float epsilon, const int tokens, const int hidden)
{
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage room;
    __shared__ float scale;
    auto* x = reinterpret_cast<pack<T, width>*>(input + blockIdx.x * stride);
    auto* r = reinterpret_cast<pack<T, width>*>(residual + (int64_t)blockIdx.x * hidden);
    auto* w = reinterpret_cast<const pack<T, width>*>(weight);
    float sum = 0;
    for (int i = threadIdx.x; i < hidden / width; i += blockDim.x) {
        pack<T, width> z = x[i], old = r[i];
        for (int k = 0; k < width; k++) {
            z.v[k] = (T)((float)z.v[k] + (float)old.v[k]);
            sum += (float)z.v[k] * (float)z.v[k];
        }
        r[i] = z;
    }
    sum = Reduce(room).Sum(sum, blockDim.x);
    if (threadIdx.x == 0)
        scale = rsqrtf(sum / hidden + epsilon);
    __syncthreads();
    for (int i = threadIdx.x; i < hidden / width; i += blockDim.x) {
        pack<T, width> z = r[i], by = w[i];
        for (int k = 0; k < width; k++)
            z.v[k] = (T)((float)z.v[k] * scale * (float)by.v[k]);
        x[i] = z;
    }
}

template <typename T, int width>
__global__ std::enable_if_t<(width == 0) || !widens<T>::value> fused_add_rms(T* __restrict__ input, const int64_t stride, T* __restrict__ residual,
                                                                            const T* __restrict__ weight, const float epsilon, const int tokens, const int hidden)
{
    if (threadIdx.x > 0 || blockIdx.x >= tokens)
        return;
    float sum = 0;
    for (int i = 0; i < hidden; i++) {
        T z = (T)((float)input[blockIdx.x * stride + i] + (float)residual[(int64_t)blockIdx.x * hidden + i]);
        residual[(int64_t)blockIdx.x * hidden + i] = z;
        sum += (float)z * (float)z;
    }
    for (int i = 0; i < hidden; i++)
        input[blockIdx.x * stride + i] = (T)((float)residual[(int64_t)blockIdx.x * hidden + i] * rsqrtf(sum / hidden + epsilon) * (float)weight[i]);
}

template <typename T, typename C, bool Halves>
__global__ void rotary(const int64_t* __restrict__ positions, T* __restrict__ query, T* __restrict__ key, const C* __restrict__ cos_sin,
                       const int rotated, const int64_t query_stride, const int64_t key_stride, const int64_t head_stride,
                       const int heads, const int kv_heads, const int head_size, const bool inverse)
{
    const C* angles = cos_sin + positions[blockIdx.x] * rotated;
    auto turn = [&](T* at, int pairs) {
        for (int i = threadIdx.x; i < pairs * rotated / 2; i += blockDim.x) {
            int pair = i % (rotated / 2);
            T* head = at + i / (rotated / 2) * head_stride;
            T *a = head + (Halves ? pair : 2 * pair), *b = Halves ? a + rotated / 2 : a + 1;
            float c = (float)angles[pair], s = (float)angles[rotated / 2 + pair] * (inverse ? -1 : 1), x = (float)*a, y = (float)*b;
            *a = (T)(x * c - y * s), *b = (T)(y * c + x * s);
        }
    };
    turn(query + blockIdx.x * query_stride, heads);
    if (key)
        turn(key + blockIdx.x * key_stride, kv_heads);
}

// One block for a head, a sequence and a part of it. The keys of a page lie in columns of x elements.
template <typename T, typename C, int Head, int Page, int Threads, Cache Kind, int Part>
__global__ void paged_attention(float* __restrict__ sums, float* __restrict__ maxima, T* __restrict__ parts, const T* __restrict__ q,
                                const C* __restrict__ keys, const C* __restrict__ values, const int kv_heads, const float scale,
                                const int* __restrict__ tables, const int* __restrict__ lengths, const int pages,
                                const float* __restrict__ slopes, const int q_stride, const int page_stride, const int head_stride)
{
    static_assert(Kind == Cache::Same, "a packed cache is another kernel");
    constexpr int x = 16 / sizeof(C);
    extern __shared__ float logits[];
    __shared__ float warps[Threads / 32];
    int head = blockIdx.x, sequence = blockIdx.y, part = blockIdx.z, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = part * Part, end = min(first + Part, lengths[sequence]), kv = head / (gridDim.x / kv_heads);
    if (first >= end)
        return;
    auto page = [&](int token) { return (int64_t)tables[sequence * pages + token / Page] * page_stride + kv * head_stride; };
    auto all = [&](float v, bool most) {
        v = most ? warp_max(v) : warp_sum(v);
        __syncthreads();
        if (lane == 0)
            warps[warp] = v;
        __syncthreads();
        float found = warps[0];
        for (int w = 1; w < Threads / 32; w++)
            found = most ? fmaxf(found, warps[w]) : found + warps[w];
        return found;
    };
    float most = -INFINITY, sum = 0;
    for (int token = first + threadIdx.x; token < end; token += Threads) {
        float dot = 0;
        for (int d = 0; d < Head; d++)
            dot += (float)q[sequence * q_stride + head * Head + d] * (float)keys[page(token) + d / x * Page * x + token % Page * x + d % x];
        dot = dot * scale + (slopes ? slopes[head] * (token - lengths[sequence] + 1) : 0);
        logits[token - first] = dot;
        most = fmaxf(most, dot);
    }
    most = all(most, true);
    for (int token = first + threadIdx.x; token < end; token += Threads)
        sum += logits[token - first] = expf(logits[token - first] - most);
    sum = all(sum, false);
    __syncthreads();
    int64_t at = ((int64_t)sequence * gridDim.x + head) * gridDim.z + part;
    for (int d = threadIdx.x; d < Head; d += Threads) {
        float out = 0;
        for (int token = first; token < end; token++)
            out += logits[token - first] * (float)values[page(token) + d * Page + token % Page];
        parts[at * Head + d] = (T)(out / sum);
    }
    if (threadIdx.x == 0)
        maxima[at] = most, sums[at] = sum;
}

template <typename T, int Head, int Threads, int Part>
__global__ void paged_reduce(T* __restrict__ out, const float* __restrict__ sums, const float* __restrict__ maxima, const T* __restrict__ parts,
                             const int* __restrict__ lengths, const int most_parts)
{
    int64_t at = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    int n = (lengths[blockIdx.y] + Part - 1) / Part;
    float most = -INFINITY, whole = 0;
    for (int p = 0; p < n; p++)
        most = fmaxf(most, maxima[at * most_parts + p]);
    for (int p = 0; p < n; p++)
        whole += sums[at * most_parts + p] * expf(maxima[at * most_parts + p] - most);
    for (int d = threadIdx.x; d < Head; d += Threads) {
        float v = 0;
        for (int p = 0; p < n; p++)
            v += (float)parts[(at * most_parts + p) * Head + d] * sums[at * most_parts + p] * expf(maxima[at * most_parts + p] - most);
        out[at * Head + d] = (T)(v / whole);
    }
}
} // namespace serve
