extern "C" __global__ void reference(const float *x, float *y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float v = x[i];
    for (int k = 0; k < 64; k++)
        v = (v * 0.99f + 0.01f) * 0.98f + 0.02f;
    y[i] = v;
}
