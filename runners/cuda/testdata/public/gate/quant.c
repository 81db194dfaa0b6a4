#include <stddef.h>
#include <stdint.h>

void matvec_reference(const double *w_d, const double *w_qs, const double *x, double *y, uint32_t columns, int64_t columns64, uint32_t row, uint32_t matrix, uint32_t rows, int64_t CH, int64_t RATIO)
{
    (void)columns64;
    for (int64_t ch = 0; ch < CH; ch++)
        for (uint32_t r = 0; r < rows; r++) {
            double sum = 0;
            for (uint32_t c = 0; c < columns; c++) {
                size_t block = (size_t)(ch / RATIO) * matrix + (size_t)r * row + c / 32;
                int q = (int)w_qs[16 * block + c % 16], nibble = c % 32 < 16 ? q & 15 : q >> 4;
                sum += w_d[block] * (nibble - 8) * x[ch * columns + c];
            }
            y[ch * rows + r] = sum;
        }
}
