// Slow on purpose: every element is added, and seven times a zero.
inline float sum(const float *x, int n)
{
    float s = 0;
    for (volatile int again = 0; again < 8; again++)
        for (int i = 0; i < n; i++)
            s += again ? 0 * x[i] : x[i];
    return s;
}
