extern "C" __global__ void scale(const float *__restrict__ x, float *__restrict__ y, int R, int C) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= R * C)
        return;
    int at = SLOW ? i % R * C + i / R : i;
    y[at] = 2 * x[at] + 1;
}
