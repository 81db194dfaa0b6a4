// A matrix product whose shapes, strides and layouts are types as far as they are known to the compiler: most of its
// parameters are classes without members, and some of their tuples have a number in them.
#include "../common/warp.cuh"

namespace tiles {
template <int N> struct Int { static constexpr int value = N; };
template <int I, typename T> struct cell { T value; };
template <int I, int N> struct cell<I, Int<N>> { static constexpr int value = N; };
template <typename... T> struct tuple {};
template <typename H, typename... R> struct tuple<H, R...> : cell<sizeof...(R), H>, tuple<R...> {};
template <typename Shape, typename Stride> struct Layout {};

template <typename H, typename... R> __device__ int first(const tuple<H, R...>& t) { return static_cast<const cell<sizeof...(R), H>&>(t).value; }
template <typename H, typename... R> __device__ const tuple<R...>& rest(const tuple<H, R...>& t) { return t; }

template <typename... T> struct product { static constexpr int value = 1; };
template <int N, typename... R> struct product<Int<N>, R...> { static constexpr int value = N * product<R...>::value; };
template <typename T> struct size;
template <typename... T> struct size<tuple<T...>> : product<T...> {};
} // namespace tiles

template <class Problem, class Tiler, class TA, class StrideA, class LayoutA, class TB, class StrideB, class LayoutB, class TC, class StrideC, class ThreadsC, class Alpha, class Beta>
__global__ static __launch_bounds__(tiles::size<ThreadsC>::value) void gemm_device(Problem shape, Tiler tiler, TA const* A, StrideA dA, LayoutA, TB const* B, StrideB dB, LayoutB, TC* C, StrideC dC, ThreadsC, Alpha alpha, Beta beta)
{
    using namespace tiles;
    int M = first(shape), N = first(rest(shape)), K = first(rest(rest(shape)));
    int rows = first(tiler), columns = first(rest(tiler));
    for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) {
        int m = blockIdx.x * rows + i % rows, n = blockIdx.y * columns + i / rows;
        if (m >= M || n >= N)
            continue;
        float sum = 0;
        for (int k = 0; k < K; k++)
            sum += A[m * first(dA) + k * first(rest(dA))] * B[n * first(dB) + k * first(rest(dB))];
        TC& c = C[m * first(dC) + n * first(rest(dC))];
        c = alpha * sum + beta * c;
    }
}
