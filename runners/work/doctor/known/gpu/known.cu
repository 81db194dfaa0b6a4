extern "C" __global__ void known(const float *x, float *y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float v = x[i];
#pragma unroll 8
    for (int k = 0; k < 64; k++)
        v = fmaf(0.5f, v, 0.25f);
    y[i] = v + x[i];
}
