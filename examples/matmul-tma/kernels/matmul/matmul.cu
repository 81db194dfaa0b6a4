// C = A·Bᵀ for FP16 matrices with rows of K elements, in tiles of 64 × 64. The copy engine (TMA) loads the tiles of A and B:
// outside of the matrices it writes zeros, so that only the stores look at the edges. A tile's row has ROW elements in shared
// memory; more than 64 of them spread the rows over the banks.
#include <cstdint>
#include <cuda.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 64, STAGES = 2;

__device__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ void load_tile(__half *to, const CUtensorMap *map, uint64_t *barrier, int column, int row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row)
                 : "memory");
}

__device__ void wait_for(uint64_t *barrier, int parity)
{
    uint32_t done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
}

extern "C" __global__ void __launch_bounds__(128) matmul(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float *c, int M, int N, int K)
{
    __shared__ alignas(128) __half tiles_a[STAGES][TILE * ROW], tiles_b[STAGES][TILE * ROW];
    __shared__ alignas(8) uint64_t loaded[STAGES];
    __shared__ float out[4][16 * 16];
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE, warp = threadIdx.x / 32, lane = threadIdx.x % 32, steps = (K + TILE - 1) / TILE;

    auto load = [&](int step) {
        int stage = step % STAGES;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&loaded[stage])), "r"(2 * TILE * ROW * 2) : "memory");
        load_tile(tiles_a[stage], &a, &loaded[stage], step * TILE, row);
        load_tile(tiles_b[stage], &b, &loaded[stage], step * TILE, column);
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&loaded[i])) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int step = 0; step < STAGES && step < steps; step++)
            load(step);
    }
    __syncthreads();

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4];
    for (auto &sum : sums)
        wmma::fill_fragment(sum, 0);
    for (int step = 0; step < steps; step++) {
        int stage = step % STAGES;
        wait_for(&loaded[stage], step / STAGES % 2);
        for (int k = 0; k < TILE; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
            wmma::load_matrix_sync(left, &tiles_a[stage][warp * 16 * ROW + k], ROW);
            for (int n = 0; n < 4; n++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
                wmma::load_matrix_sync(right, &tiles_b[stage][n * 16 * ROW + k], ROW);
                wmma::mma_sync(sums[n], left, right, sums[n]);
            }
        }
        __syncthreads(); // all warps have read the tiles that the next load overwrites
        if (threadIdx.x == 0 && step + STAGES < steps)
            load(step + STAGES);
    }
    for (int n = 0; n < 4; n++) {
        wmma::store_matrix_sync(out[warp], sums[n], 16, wmma::mem_row_major);
        __syncwarp();
        for (int i = lane; i < 256; i += 32) {
            int r = row + warp * 16 + i / 16, s = column + n * 16 + i % 16;
            if (r < M && s < N)
                c[(size_t)r * N + s] = out[warp][i];
        }
        __syncwarp();
    }
}
