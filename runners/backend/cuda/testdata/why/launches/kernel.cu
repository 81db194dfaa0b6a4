extern "C" __global__ void first(const float *__restrict__ x, float *__restrict__ y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        y[i] = x[i] * 0.99f + 0.01f;
}

extern "C" __global__ void next(float *y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        y[i] = y[i] * 0.99f + 0.01f;
}

extern "C" __global__ void all(const float *__restrict__ x, float *__restrict__ y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float v = x[i];
    for (int k = 0; k < 8; k++)
        v = v * 0.99f + 0.01f;
    y[i] = v;
}
