// The Walsh-Hadamard transform of an array in place, in passes: a pass adds and subtracts numbers that lie half apart.
// The manifest launches one pass after the other and gives each its half.
extern "C" __global__ void pass2(float *y, int half, int n)
{
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= n / 2)
        return;
    float *at = y + (pair / half) * 2 * half + pair % half;
    const float a = at[0], b = at[half];
    at[0] = a + b;
    at[half] = a - b;
}
