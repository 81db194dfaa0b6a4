/* A bit of everything that an object file can hold. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static const char *const words[] = {"one", "two", "three"};
static float kept[64];
static int preset = 7;
int shared_counter;

__attribute__((noinline)) static float power(float x, int n)
{
    float y = 1;
    while (n-- > 0)
        y *= x;
    return y;
}

__attribute__((cold, noinline)) static void complain(int n)
{
    printf("%s %d\n", words[n % 3], n);
}

float (*chosen)(float, int) = power;

void scale(const float *x, float *y, int32_t N)
{
    for (int i = 0; i < N; i++) {
        switch (i % 9) {
        case 0: y[i] = sinf(x[i]); break;
        case 1: y[i] = expf(x[i]) * 3.25f; break;
        case 2: y[i] = table[i & 7]; break;
        case 3: y[i] = chosen(x[i], preset); break;
        case 4: y[i] = kept[i & 63]++; break;
        case 5: y[i] = (float)strlen(words[i % 3]); break;
        default: y[i] = power(x[i], i) + (float)shared_counter++;
        }
        if (x[i] < 0)
            complain(i);
    }
    if (N > 1000)
        scale(x, y, N / 2);
}
