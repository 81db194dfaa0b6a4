// What each kernel computes, in the simplest way.
extern "C" __global__ void cross_entropy_reference(const float *x, const float *target, float *loss, float *grad, int n_cols, int ignore_index, float label_smoothing, long long R)
{
    long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row >= R) return;
    x += row * n_cols, grad += row * n_cols;
    int y = (int)target[row];
    double most = -INFINITY, sum = 0, total = 0, eps = (double)label_smoothing / n_cols;
    for (int i = 0; i < n_cols; i++) most = fmax(most, (double)x[i]), total += x[i];
    for (int i = 0; i < n_cols; i++) sum += exp(x[i] - most);
    double all = most + log(sum);
    bool counts = y != ignore_index;
    loss[row] = counts ? (1 - label_smoothing) * (all - x[y]) + eps * (n_cols * all - total) : 0;
    for (int i = 0; i < n_cols; i++) grad[i] = counts ? exp(x[i] - all) - eps - (i == y ? 1 - label_smoothing : 0) : 0;
}

extern "C" __global__ void rope_reference(const float *q, const float *cos, const float *sin, float *out, int heads, int half, long long T)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, t = i / heads;
    if (t >= T) return;
    for (int e = 0; e < half; e++) {
        double a = q[i * 2 * half + e], b = q[i * 2 * half + half + e], c = cos[t * half + e], s = sin[t * half + e];
        out[i * 2 * half + e] = a * c - b * s;
        out[i * 2 * half + half + e] = b * c + a * s;
    }
}

// A thread is a column of the state.
extern "C" __global__ void gated_delta_reference(const float *q, const float *k, const float *v, const float *g, const float *beta, float *o, int T, float scale, long long H, long long K, long long V)
{
    long long col = blockIdx.x * 32 + threadIdx.x, head = blockIdx.y;
    if (col >= V) return;
    float state[128] = {};
    for (int t = 0; t < T; t++) {
        long long row = t * H + head;
        float known = 0, out = 0, keep = expf(g[row]);
        for (int i = 0; i < K; i++) state[i] *= keep, known += state[i] * k[row * K + i];
        float add = (v[row * V + col] - known) * beta[row];
        for (int i = 0; i < K; i++) state[i] += k[row * K + i] * add, out += state[i] * q[row * K + i];
        o[row * V + col] = out * scale;
    }
}

extern "C" __global__ void moe_reference(const float *a, const float *b, float *c, const float *weights, const float *sorted_ids, const float *expert_ids, int N, int K, int valid)
{
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;
    long long token = (long long)sorted_ids[row], expert = (long long)expert_ids[row / 64];
    if (col >= N || token >= valid) return;
    float sum = 0;
    for (int i = 0; i < K; i++) sum += a[token / 2 * K + i] * b[(expert * N + col) * K + i];
    c[token * N + col] = sum * weights[token];
}

// A thread is an element of the output, and all of a block read the same keys.
extern "C" __global__ void decode_reference(const float *q, const float *k, const float *v, const float *lengths, float *o, int S, float scale, long long H, long long D)
{
    long long head = blockIdx.x, batch = blockIdx.y, at = threadIdx.x;
    float most = -INFINITY, sum = 0, out = 0;
    for (int t = 0; t < (int)lengths[batch]; t++) {
        long long row = ((batch * S + t) * H + head) * D;
        float score = 0;
        for (int i = 0; i < D; i++) score += q[(batch * H + head) * D + i] * k[row + i];
        float now = fmaxf(most, score * scale), keep = expf(most - now), p = expf(score * scale - now);
        out = out * keep + p * v[row + at], sum = sum * keep + p, most = now;
    }
    o[(batch * H + head) * D + at] = out / sum;
}

extern "C" __global__ void matmul_reference(const float *a, const float *b, float *c, int M, int N, int K)
{
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0;
    for (int i = 0; i < K; i++) sum += a[(long long)row * K + i] * b[(long long)col * K + i];
    c[(long long)row * N + col] = sum;
}
