// Softmax of each row, one block a row.
#include <math_constants.h>

__device__ float reduce(float value, bool sum, float *shared)
{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            float other = shared[threadIdx.x + half];
            shared[threadIdx.x] = sum ? shared[threadIdx.x] + other : fmaxf(shared[threadIdx.x], other);
        }
        __syncthreads();
    }
    float result = shared[0];
    __syncthreads();
    return result;
}

extern "C" __global__ void softmax(const float *x, float *y, int columns, int rows)
{
    __shared__ float shared[256];
    x += (size_t)blockIdx.x * columns, y += (size_t)blockIdx.x * columns;
    float largest = -CUDART_INF_F, total = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        largest = fmaxf(largest, x[i]);
    largest = reduce(largest, false, shared);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        total += __expf(x[i] - largest);
    total = reduce(total, true, shared);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[i] = __expf(x[i] - largest) / total;
}
