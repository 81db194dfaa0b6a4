// Hopper only: touches the accumulators of an asynchronous product in flight, so ptxas serialises the pipeline
// and says so in "info" lines with a code.
__global__ void serialised(unsigned long long a, unsigned long long b, float* out, int n)
{
    float d[4] = {0};
    for (int k = 0; k < n; k++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "l"(a + k), "l"(b));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        d[1] *= 2;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; i++)
        out[threadIdx.x * 4 + i] = d[i];
}

__global__ void untouched(float* out)
{
    out[threadIdx.x] *= 2;
}
