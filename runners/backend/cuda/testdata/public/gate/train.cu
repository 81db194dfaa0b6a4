// A thread for a row, in the simplest way.
#define ROW (blockIdx.x * (long long)blockDim.x + threadIdx.x)

extern "C" __global__ void layernorm_reference(float *out, float *mean, float *rstd, const float *inp, const float *weight, const float *bias, int N, int C)
{
    long long n = ROW;
    if (n >= N)
        return;
    double m = 0, v = 0;
    for (int c = 0; c < C; c++)
        m += (double)inp[n * C + c] / C;
    for (int c = 0; c < C; c++)
        v += (inp[n * C + c] - m) * (inp[n * C + c] - m) / C;
    mean[n] = m, rstd[n] = 1 / sqrt(v + 1e-5);
    for (int c = 0; c < C; c++)
        out[n * C + c] = (inp[n * C + c] - m) / sqrt(v + 1e-5) * weight[c] + bias[c];
}

extern "C" __global__ void softmax_reference(float *out, float inv_temperature, const float *inp, int N, int T)
{
    long long row = ROW;
    if (row >= (long long)N * T)
        return;
    const float *x = inp + row * T;
    double most = x[0], sum = 0;
    for (int i = 0; i <= row % T; i++)
        most = fmax(most, (double)x[i]);
    for (int i = 0; i <= row % T; i++)
        sum += exp(inv_temperature * (x[i] - most));
    for (int i = 0; i <= row % T; i++)
        out[row * T + i] = exp(inv_temperature * (x[i] - most)) / sum;
}

extern "C" __global__ void embedding_reference(float *out, const float *tokens, const float *wte, const float *wpe, int B, int T, int C)
{
    long long row = ROW;
    for (int c = 0; row < (long long)B * T && c < C; c++)
        out[row * C + c] = wte[(long long)tokens[row] * C + c] + wpe[row % T * C + c];
}
