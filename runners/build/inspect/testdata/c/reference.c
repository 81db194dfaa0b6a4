#include <stdint.h>

void reference(const double *x, double *y, int32_t N)
{
    for (int i = 0; i < N; i++)
        y[i] = 2 * x[i];
}
