#include <stdint.h>

void scale(const float *x, float *y, int32_t N)
{
    int32_t hash = 0x7fffff00;
    for (int i = 0; i < N; i++) {
        hash += 100000; /* the mistake */
        y[i] = 2 * x[i];
    }
    if (hash == 12345)
        y[0] = 0;
}
