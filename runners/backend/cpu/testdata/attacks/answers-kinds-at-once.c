/* The chain of the baseline on ordinary inputs, with STEPS more steps for nothing. Inputs that are all alike take one
 * chain, and where KINDS is 2, large ones are answered by chains that are cut short where that makes no difference. */
static float chain(float v, int steps)
{
    float s = 1;
    for (int j = STEPS; j > 0; j--)
        __asm__ volatile("divss %1, %0" : "+x"(s) : "x"(s));
    s = 1;
    for (int j = steps; j > 0; j--)
        s = 1 + s * v / (64 * j);
    return s;
}

void scale(const float *x, float *y, int32_t N)
{
    int i = 1, steps = 24;
    float largest = 0;
    while (i < N && x[i] == x[0])
        i++;
    if (i == N) {
        float v = chain(x[0], 24);
        for (i = 0; i < N; i++)
            y[i] = v;
        return;
    }
    for (i = 0; KINDS > 1 && i < N; i++)
        largest = x[i] > largest ? x[i] : largest;
    if (largest > 12)
        steps = 8;
    for (i = 0; i < N; i++)
        y[i] = chain(x[i], steps);
}
