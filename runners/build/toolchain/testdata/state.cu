// Variables that a kernel writes, and those that it does not.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda/std/tuple>

__device__ const float table[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
__device__ float readonly[4] = {1, 2, 3, 4};
__constant__ float constants[4] = {1, 2, 3, 4};
__device__ int unused;

__device__ int counter;
__device__ float buffer[64];
__device__ int hidden;
__device__ int* where = &hidden; // reached through another variable
__device__ unsigned given;
__device__ float lent[4];

__device__ __noinline__ float pick(const float* t, int i) { return t[i]; }
__device__ __noinline__ void put(unsigned* to, int i) { to[i & 1] = i; }

extern "C" __global__ void k(float* y, float** leak, int n)
{
    static const int local[8] = {9, 8, 7, 6, 5, 4, 3, 2};
    float v = table[n & 1][n & 3] + readonly[n & 3] + constants[n & 3] + local[n & 7] + pick(table[0], n & 3);
    if (n == 1)
        printf("%s %d\n", "told", n);
    if (n == 2)
        atomicAdd(&counter, 1);
    float* to = n > 5 ? buffer : y;
    to[n & 63] = v + sinf(y[1]);
    *where = n;
    put(&given, n);
    *leak = lent;
    auto grid = cooperative_groups::this_grid();
    if (n > 7)
        grid.sync();
    cuda::std::tuple<int, float> t(n, v);
    y[2] = cuda::std::get<1>(t);
}
