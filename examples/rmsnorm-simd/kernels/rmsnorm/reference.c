#include <math.h>
#include <stdint.h>

void rmsnorm_reference(const double *x, const double *weight, double *y, int32_t rows, int32_t columns)
{
    for (int r = 0; r < rows; r++, x += columns, y += columns) {
        double sum = 0;
        for (int i = 0; i < columns; i++)
            sum += x[i] * x[i];
        for (int i = 0; i < columns; i++)
            y[i] = x[i] / sqrt(sum / columns + 1e-5) * weight[i];
    }
}
