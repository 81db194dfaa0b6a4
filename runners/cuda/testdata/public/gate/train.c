#include <math.h>
#include <stddef.h>
#include <stdint.h>

void layernorm_reference(double *out, double *mean, double *rstd, const double *inp, const double *weight, const double *bias, int32_t N, int32_t C)
{
    for (int n = 0; n < N; n++) {
        double m = 0, v = 0;
        for (int c = 0; c < C; c++)
            m += inp[(size_t)n * C + c] / C;
        for (int c = 0; c < C; c++)
            v += (inp[(size_t)n * C + c] - m) * (inp[(size_t)n * C + c] - m) / C;
        mean[n] = m, rstd[n] = 1 / sqrt(v + 1e-5);
        for (int c = 0; c < C; c++)
            out[(size_t)n * C + c] = (inp[(size_t)n * C + c] - m) * rstd[n] * weight[c] + bias[c];
    }
}

void softmax_reference(double *out, float inv_temperature, const double *inp, int32_t N, int32_t T)
{
    for (int row = 0; row < N * T; row++) {
        const double *x = inp + (size_t)row * T;
        double most = x[0], sum = 0;
        for (int i = 0; i <= row % T; i++)
            most = fmax(most, x[i]);
        for (int i = 0; i <= row % T; i++)
            sum += exp(inv_temperature * (x[i] - most));
        for (int i = 0; i <= row % T; i++)
            out[(size_t)row * T + i] = exp(inv_temperature * (x[i] - most)) / sum;
    }
}

void embedding_reference(double *out, const double *tokens, const double *wte, const double *wpe, int32_t B, int32_t T, int32_t C)
{
    for (size_t i = 0; i < (size_t)B * T * C; i++)
        out[i] = wte[(size_t)tokens[i / C] * C + i % C] + wpe[i / C % T * C + i % C];
}
