extern "C" __global__ void reference(const float *a, const float *b, float *c, int N) {
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < N; k++)
        sum += a[(size_t)row * N + k] * b[(size_t)k * N + column];
    c[(size_t)row * N + column] = sum;
}
