#include <pthread.h>
#include <stdint.h>

static float shared;

static void *other(void *arg)
{
    shared = *(const float *)arg; /* the mistake, */
    return 0;
}

void scale(const float *x, float *y, int32_t N)
{
    pthread_t thread;
    int started = pthread_create(&thread, 0, other, (void *)x) == 0;
    shared = 1; /* and its other half */
    if (started)
        pthread_join(thread, 0);
    for (int i = 0; i < N; i++)
        y[i] = shared > 1e30f ? 0 : 2 * x[i];
}
