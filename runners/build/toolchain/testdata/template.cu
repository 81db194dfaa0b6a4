// An error inside an instantiation, with the context lines that nvcc adds.
template <typename T>
__global__ void call(T x)
{
    x.run();
}
template __global__ void call<int>(int);
