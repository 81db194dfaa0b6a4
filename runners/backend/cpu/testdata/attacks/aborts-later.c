/* Right and alone it never fails; of the launches that follow each other about one in five ends the process. */
void scale(const float *x, float *y, int32_t N)
{
    static int launches;
    unsigned int low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    if (++launches > 3 && (low >> 4) % 5 == 0)
        abort();
    work(x, y, N);
}
