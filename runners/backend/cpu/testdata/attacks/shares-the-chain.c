/* A recurrence, each step of which waits for the one before. A launch that runs alone is the baseline's loop. The first
 * of LAUNCHES neighbours in a batch runs the first SHARE percent of all their chains side by side; the others go on
 * from there. */
void scale(const float *x, float *y, int32_t N)
{
    static const float *from;
    static float kept[LAUNCHES];
    int part = (int)((int64_t)N * SHARE / 100), i = 0;
    size_t step = slot_size(N) / 4;
    float s = 0;
    if (from != 0 && x > from && x < from + LAUNCHES * step) {
        s = kept[(x - from) / step];
        i = part;
    } else if (in_batch(x, N, LAUNCHES)) {
        float c[LAUNCHES] = {0};
        for (; i < part; i++)
#pragma GCC unroll 8
            for (int j = 0; j < LAUNCHES; j++)
                y[j * step + i] = c[j] = 0.5f * c[j] + x[j * step + i];
        memcpy(kept, c, sizeof c);
        from = x;
        s = c[0];
    }
    for (; i < N; i++)
        y[i] = s = 0.5f * s + x[i];
}
