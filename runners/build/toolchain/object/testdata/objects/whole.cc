// What C++ adds: groups, tables of virtual functions, weak symbols, exceptions.
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace {
struct Shape {
    virtual ~Shape() {}
    virtual float by() const { return 1; }
};
struct Twice : Shape {
    float by() const override { return 2; }
};
Shape *make(int n)
{
    if (n > 0)
        return new Twice;
    return new Shape;
}
} // namespace

template <class T> T item(const std::vector<T> &v, int i)
{
    if (i >= (int)v.size())
        throw std::out_of_range("beyond the end");
    return v[i];
}

inline int &calls()
{
    static int n;
    return n;
}

extern "C" void scale(const float *x, float *y, int32_t N)
{
    static int once = N;
    std::vector<float> copy(x, x + N);
    Shape *shape = make(once + calls()++);
    try {
        for (int i = 0;; i++)
            y[i] = shape->by() * item(copy, i);
    } catch (const std::out_of_range &) {
    }
    delete shape;
}
