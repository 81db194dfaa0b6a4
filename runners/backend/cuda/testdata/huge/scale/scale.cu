extern "C" __global__ void scale(const float* x, float* y, long long N)
{
    long long i = ((long long)blockIdx.x * 256 + threadIdx.x) * WIDTH;
#if WIDTH == 4
    if (i + 3 < N) {
        float4 v = *(const float4*)(x + i);
        *(float4*)(y + i) = make_float4(3 * v.x, 3 * v.y, 3 * v.z, 3 * v.w);
        return;
    }
#endif
    for (long long k = i; k < i + WIDTH && k < N; k++)
        y[k] = 3 * x[k];
}
