// Compiles with warnings.
__global__ void warned(float* out)
{
    int unused = 3;
    unsigned int u = threadIdx.x;
    if (u >= 0)
        out[u] = 1.0f;
    return;
    out[0] = 2.0f;
}
