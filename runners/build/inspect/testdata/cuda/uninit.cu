// Reads its output before anybody has written it.
extern "C" __global__ void scale(const float *x, float *y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float before = y[i]; // the mistake
    y[i] = before > 1e30f ? 0 : 2 * x[i];
}
