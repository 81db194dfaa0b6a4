extern "C" __global__ void reference(const float *x, float *y, long long S, long long H, long long D)
{
    long long row = blockIdx.x, head = blockIdx.y;
    for (long long i = threadIdx.x; i < D; i += blockDim.x) y[(head * S + row) * D + i] = 2 * x[(row * H + head) * D + i];
}
