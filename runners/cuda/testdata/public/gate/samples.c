#include <stddef.h>
#include <stdint.h>

void transpose_reference(double *odata, const double *idata, int32_t width, int32_t height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            odata[(size_t)x * height + y] = idata[(size_t)y * width + x];
}

void sum_reference(const double *idata, double *sum, uint32_t n)
{
    *sum = 0;
    for (uint32_t i = 0; i < n; i++)
        *sum += idata[i];
}
