#include <stdint.h>

void stencil_reference(const double *x, const double *w, double *y, int32_t rows, int32_t columns)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double sum = 0;
            for (int i = 0; i < 5; i++)
                for (int j = 0; j < 5; j++)
                    sum += w[i * 5 + j] * x[(int64_t)(r + i) * (columns + 4) + c + j];
            y[(int64_t)r * columns + c] = sum;
        }
}
