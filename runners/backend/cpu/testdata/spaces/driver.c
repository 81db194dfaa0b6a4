// Times stencils from shared objects: driver RUNS LAUNCHES ROWS COLUMNS FILE...
// All files have their turn RUNS times, with LAUNCHES launches each. A line of the output is the index of the file and the
// microseconds of each launch of its turn.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void kernel(const float *, const float *, float *, int32_t, int32_t);

static float *draw(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    for (size_t i = 0; p && i < n; i++)
        p[i] = rand() / (float)RAND_MAX - 0.5f;
    return p;
}

int main(int count, char **words)
{
    if (count < 6)
        return 2;
    const int runs = atoi(words[1]), launches = atoi(words[2]), rows = atoi(words[3]), columns = atoi(words[4]), files = count - 5;
    float *x = draw((size_t)(rows + 4) * (columns + 4)), *w = draw(25), *y = draw((size_t)rows * columns);
    kernel **stencils = calloc(files, sizeof *stencils);
    if (!x || !w || !y || !stencils)
        return 1;
    for (int f = 0; f < files; f++) {
        void *library = dlopen(words[5 + f], RTLD_NOW | RTLD_LOCAL);
        if (!library || !(stencils[f] = (kernel *)dlsym(library, "stencil"))) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        stencils[f](x, w, y, rows, columns);
    }
    for (int run = 0; run < runs; run++)
        for (int f = 0; f < files; f++) {
            const int file = run % 2 ? files - 1 - f : f; // there and back, so that nobody is always the second
            printf("%d", file);
            for (int i = 0; i < launches; i++) {
                struct timespec from, to;
                clock_gettime(CLOCK_MONOTONIC, &from);
                stencils[file](x, w, y, rows, columns);
                clock_gettime(CLOCK_MONOTONIC, &to);
                printf(" %.3f", (to.tv_sec - from.tv_sec) * 1e6 + (to.tv_nsec - from.tv_nsec) * 1e-3);
            }
            printf("\n");
        }
    return 0;
}
