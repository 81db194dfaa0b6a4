// Wants about 100 live values and is allowed 32 registers: ptxas must spill.
extern "C" __global__ void __maxnreg__(32) spill(const float* __restrict__ in, float* out)
{
    float v[96];
#pragma unroll
    for (int i = 0; i < 96; i++)
        v[i] = in[threadIdx.x + i * 1024];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 96; i++)
        sum += v[i] * v[(i * 37 + 11) % 96];
    out[threadIdx.x] = sum;
}
