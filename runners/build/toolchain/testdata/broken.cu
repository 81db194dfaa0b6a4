// Does not compile, in three ways.
__global__ void broken(float* out)
{
    out[threadIdx.x] = missing;
    float x = "text";
    undefined_call(x)
}
