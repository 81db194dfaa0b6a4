#include <stdint.h>

void scale(const float *x, float *y, int32_t N)
{
    for (int i = 0; i < N; i++) {
        if (y[i] > 1e30f) /* the mistake */
            y[i] = 0;
        y[i] = 2 * x[i];
    }
}
