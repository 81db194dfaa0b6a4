// One block makes all passes.
extern "C" __global__ void reference(const float *x, float *y, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = x[i];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();
        for (int pair = threadIdx.x; pair < n / 2; pair += blockDim.x) {
            const int i = pair / half * 2 * half + pair % half;
            const float a = y[i], b = y[i + half];
            y[i] = a + b;
            y[i + half] = a - b;
        }
    }
}
