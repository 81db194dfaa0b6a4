#include <stdint.h>

/* Reads its input one element ahead, and so once beyond the end. */
void scale(const float *x, float *y, int32_t N)
{
    float next = x[0];
    for (int i = 0; i < N; i++) {
        float now = next;
        next = x[i + 1]; /* the mistake */
        y[i] = 2 * now + 0 * (next > 1e30f);
    }
}
