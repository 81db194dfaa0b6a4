// Only ptxas can notice that nobody defines this.
extern __device__ float elsewhere(float);

__global__ void unresolved(float* out)
{
    out[0] = elsewhere(out[1]);
}
