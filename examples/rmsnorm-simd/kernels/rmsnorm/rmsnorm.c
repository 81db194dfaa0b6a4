// Root-mean-square normalisation of each row.
#include <math.h>
#include <stdint.h>

void rmsnorm(const float *x, const float *weight, float *y, int32_t rows, int32_t columns)
{
    for (int r = 0; r < rows; r++, x += columns, y += columns) {
        float sum = 0;
        for (int i = 0; i < columns; i++)
            sum += x[i] * x[i];
        float scale = 1 / sqrtf(sum / columns + 1e-5f);
        for (int i = 0; i < columns; i++)
            y[i] = x[i] * scale * weight[i];
    }
}
