#include <stdint.h>

__attribute__((noinline)) static float sum(const float *tile, int n)
{
    float s = 0;
    for (int k = 0; k <= n; k++)
        s += tile[k]; /* the mistake */
    return s;
}

void scale(const float *x, float *y, int32_t N)
{
    for (int i = 0; i < N; i++) {
        volatile float tile[4] = {x[i], x[i], 0, 0};
        float s = sum((const float *)tile, 4);
        y[i] = s == s ? 2 * x[i] : 2 * x[i];
    }
}
