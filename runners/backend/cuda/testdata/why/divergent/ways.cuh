__device__ float way(int kind, float v) {
    switch (kind) {
    case 0:
        for (int k = 0; k < 128; k++)
            v = v * 0.99f + 0.01f;
        break;
    case 1:
        for (int k = 0; k < 128; k++)
            v = fabsf(v - 0.5f) * 0.7f;
        break;
    case 2:
        for (int k = 0; k < 128; k++)
            v = fmaxf(v * 0.5f, 0.3f - v);
        break;
    default:
        for (int k = 0; k < 128; k++)
            v = v * v * 0.1f + 0.3f - v * 0.2f;
    }
    return v;
}
