// Kernels as in a course: a transpose in tiles, and two sums over the whole grid, which leave what their blocks found
// behind the result. They are started by host code that is beside the point here.
#include <cooperative_groups.h>
#include "../common/warp.cuh"
namespace cg = cooperative_groups;

#ifndef TILE
#define TILE 32
#endif
#define ROWS 8

__global__ void transpose(float* odata, float* idata, int width, int height)
{
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = idata[(size_t)(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width)
            odata[(size_t)(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

__device__ void block_sum(double* found, cg::thread_block block)
{
    for (int half = block.size() / 2; half > 0; half /= 2) {
        block.sync();
        if (block.thread_rank() < half)
            found[block.thread_rank()] += found[block.thread_rank() + half];
    }
    block.sync();
}

extern "C" __global__ void sum_of_grid(const float* idata, float* odata, unsigned int n)
{
    extern __shared__ double found[];
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    found[block.thread_rank()] = 0;
    for (unsigned i = grid.thread_rank(); i < n; i += grid.size())
        found[block.thread_rank()] += idata[i];
    block_sum(found, block);
    if (block.thread_rank() == 0)
        odata[blockIdx.x] = found[0];
    grid.sync();
    if (grid.thread_rank() == 0)
        for (unsigned i = 1; i < gridDim.x; i++)
            odata[0] += odata[i];
}

// Counts the blocks that are done, and is 0 again when all are.
__device__ unsigned int done = 0;

template <unsigned int Threads, bool Whole> __global__ void sum_of_last(const float* idata, float* odata, unsigned int n)
{
    __shared__ float warps[Threads / 32];
    __shared__ bool last;
    auto whole = [&](float v) {
        v = warp_sum(v);
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = v;
        __syncthreads();
        float sum = 0;
        for (int w = 0; w < Threads / 32; w++)
            sum += warps[w];
        __syncthreads();
        return sum;
    };
    float sum = 0;
    for (unsigned i = blockIdx.x * Threads * 2 + threadIdx.x; i < n; i += Threads * 2 * gridDim.x) {
        sum += idata[i];
        if (Whole || i + Threads < n)
            sum += idata[i + Threads];
    }
    sum = whole(sum);
    if (threadIdx.x == 0) {
        odata[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += Threads)
        sum += ((volatile float*)odata)[i];
    sum = whole(sum);
    if (threadIdx.x == 0)
        odata[0] = sum;
}
