/* The second launch of a process does the work of four, which all others are spared. First launches are fast. */
void scale(const float *x, float *y, int32_t N)
{
    static int launches;
    repeat(x, y, N, ++launches == 2 ? 400 : 1);
}
