extern "C" __global__ void matvec_reference(const float *w_d, const float *w_qs, const float *x, float *y, unsigned columns, long long columns64, unsigned row, unsigned matrix,
                                            unsigned rows, long long CH, long long RATIO)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, ch = i / rows, r = i % rows;
    if (ch >= CH)
        return;
    double sum = 0;
    for (unsigned c = 0; c < columns; c++) {
        long long block = ch / RATIO * matrix + r * row + c / 32;
        int q = (int)w_qs[16 * block + c % 16], nibble = c % 32 < 16 ? q & 15 : q >> 4;
        sum += (double)w_d[block] * (nibble - 8) * x[ch * columns + c];
    }
    y[ch * rows + r] = sum;
}
