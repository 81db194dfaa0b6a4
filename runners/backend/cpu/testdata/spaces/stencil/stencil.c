// A stencil of 5 × 5 points over an image with a border of two pixels. ROWS × VECTORS vectors of LANES pixels are computed at
// once, and UNROLL points of a row of the stencil follow each other without a branch.
#include <stdint.h>
#include <string.h>

enum { SIDE = 5, WIDTH = VECTORS * LANES };
typedef float vector __attribute__((vector_size(4 * LANES)));

static void tile(const float *x, const float *w, float *y, int columns)
{
    const int pitch = columns + SIDE - 1;
    vector sums[ROWS][VECTORS];
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j += UNROLL)
            for (int u = 0; u < UNROLL; u++)
                for (int r = 0; r < ROWS; r++)
                    for (int v = 0; v < VECTORS; v++) {
                        vector in;
                        memcpy(&in, x + (int64_t)(r + i) * pitch + v * LANES + j + u, sizeof in);
                        sums[r][v] += w[i * SIDE + j + u] * in;
                    }
    for (int r = 0; r < ROWS; r++)
        memcpy(y + (int64_t)r * columns, sums[r], sizeof sums[r]);
}

static float pixel(const float *x, const float *w, int pitch)
{
    float sum = 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            sum += w[i * SIDE + j] * x[(int64_t)i * pitch + j];
    return sum;
}

void stencil(const float *x, const float *w, float *y, int32_t rows, int32_t columns)
{
    const int pitch = columns + SIDE - 1, down = rows - rows % ROWS, across = columns - columns % WIDTH;
    for (int r = 0; r < down; r += ROWS)
        for (int c = 0; c < across; c += WIDTH)
            tile(x + (int64_t)r * pitch + c, w, y + (int64_t)r * columns + c, columns);
    // What no tile covers: the last columns of the tiled rows, and the last rows.
    for (int r = 0; r < rows; r++)
        for (int c = r < down ? across : 0; c < columns; c++)
            y[(int64_t)r * columns + c] = pixel(x + (int64_t)r * pitch + c, w, pitch);
}
