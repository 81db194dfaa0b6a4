#include <stdint.h>

static float factors[4] = {2, 2, 2, 2};

__attribute__((noinline)) static float factor(const float *of, int i)
{
    return of[i]; /* the mistake */
}

void scale(const float *x, float *y, int32_t N)
{
    volatile float beyond = 0;
    for (int i = 0; i < N; i++) {
        if (i < 8)
            beyond = factor(factors, i);
        y[i] = 2 * x[i];
    }
    (void)beyond;
}
