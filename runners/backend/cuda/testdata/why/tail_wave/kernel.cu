// The shared memory only keeps other blocks away.
extern "C" __global__ void __launch_bounds__(1024) iterate(const float *__restrict__ x, float *__restrict__ y, int N) {
    constexpr int each = SLOW ? 8 : 1;
    for (int part = 0; part < each; part++) {
        int i = (blockIdx.x * each + part) * 1024 + threadIdx.x;
        if (i >= N)
            return;
        float v = x[i];
        for (int k = 0; k < 800; k++)
            v = v * 0.99f + 0.01f;
        y[i] = v;
    }
}
