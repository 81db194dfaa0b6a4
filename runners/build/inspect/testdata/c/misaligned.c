#include <stdint.h>

void scale(const float *x, float *y, int32_t N)
{
    volatile uint32_t bits = 0;
    const char *bytes = (const char *)x;
    if (N > 1)
        bits = *(const uint32_t *)(bytes + 1); /* the mistake */
    for (int i = 0; i < N; i++)
        y[i] = 2 * x[i];
    (void)bits;
}
