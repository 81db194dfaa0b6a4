#if SLOW
#define REAL(x) x
#else
#define REAL(x) x##f
#endif

extern "C" __global__ void iterate(const float *__restrict__ x, float *__restrict__ y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float v = x[i];
    for (int k = 0; k < 64; k++)
        v = v * REAL(0.99) + REAL(0.01);
    y[i] = v;
}
