// Reads its input some elements ahead, and so beyond the end.
extern "C" __global__ void scale(const float *x, float *y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float ahead = x[i + 4]; // the mistake
    y[i] = ahead > 1e30f ? 0 : 2 * x[i];
}
