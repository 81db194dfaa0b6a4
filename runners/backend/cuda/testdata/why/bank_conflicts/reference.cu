extern "C" __global__ void reference(const float *x, float *y, int N) {
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    y[(size_t)column * N + row] = x[(size_t)row * N + column];
}
