extern "C" __global__ void reference(const float *x, float *y, int columns, int rows)
{
    x += (size_t)blockIdx.x * columns, y += (size_t)blockIdx.x * columns;
    double largest = x[0], total = 0;
    for (int i = 1; i < columns; i++)
        largest = fmax(largest, (double)x[i]);
    for (int i = 0; i < columns; i++)
        total += exp(x[i] - largest);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[i] = exp(x[i] - largest) / total;
}
