#include <stdint.h>

void scale(const float *x, float *y, int32_t N)
{
    for (int i = 0; i < N; i++)
        y[i] = 2 * x[i];
}
