// The front end does not read inline PTX; ptxas does, and stops.
__global__ void badptx(unsigned* out)
{
    unsigned v;
    asm("mov.b32 %0, %%nosuchregister;" : "=r"(v));
    out[0] = v;
}
