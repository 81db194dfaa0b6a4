// What the judge does on the GPU, in a context of its own: it draws inputs, lays
// them out for the sides, and compares what came back. Values are the same bits
// that packages tensor and problem draw on the host: compile with -fmad=false,
// for a product that is fused with a sum rounds once where the host rounds twice.
//
// No kernel here uses shared memory or barriers, so that tests can run them on a
// CPU, thread by thread. blockIdx.y is the launch of the batch.

typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char byte;

enum { E4M3, E5M2, F16, BF16, F32, F64, I8, U8, I32, I64, I16, U16, U32, U64, BOOL, INT4, E2M1 };
enum { NORMAL, UNIFORM, DOMINANT, LARGE, CONSTANT, ZERO, ONES, PEAKS, EDGES, INFINITE,
       ANY, OFFSETS, PERMUTATION, SORTED, MASK, CAUSAL };

// How elements fall into groups that share a scale: see tensor.Grouping.
struct Grouping { u64 run, axes, lengths[8], strides[8]; };

// One input argument of every launch.
struct Draw {
    byte *slots;       // the first launch's slot
    u64 stride;        // between slots
    u64 offset;        // of the array in its slot
    u64 elements, dtype, dist;
    u64 rows, columns; // of a matrix: the last two axes
    const u64 *keys;   // of the first launch: the key, and what dominant rows follow from
    u64 keyStride;     // in words
    u64 quantized;     // 1: divide by the group's scale
    double *drawn;     // the values themselves, by launch, of one that is quantised
    u64 *maxima;       // bits of the largest magnitude, by launch and group
    u64 groups;
    double largest;    // value of the format
    u64 count, pitch;  // a member of structs: elements in each, and bytes from one to the next
    u64 exact;         // 1: values are what they are, and not made integers of
    u64 bounded;       // 1: from least to most
    double least, most, scale;
    double total, shortest, longest; // of offsets
    double share;      // of a mask
    u64 whole_rows;
    u64 width;         // of what has an order: a row, or everything
    Grouping grouping;
    const double *recorded; // the values of a recording; null where they are drawn
    double noise;
    double lowest, highest; // of a value with noise
    u64 axes, lengths[8], shuffled[8];
    const u64 *orders;      // of the first launch: a key for each axis
    u64 orderStride;        // in words
};

__device__ static u64 bits_of(double x) { union { double d; u64 u; } v; v.d = x; return v.u; }
__device__ static double double_of(u64 x) { union { double d; u64 u; } v; v.u = x; return v.d; }
__device__ static unsigned word_of(float x) { union { float f; unsigned u; } v; v.f = x; return v.u; }
__device__ static float float_of(unsigned x) { union { float f; unsigned u; } v; v.u = x; return v.f; }

__device__ static u64 mix(u64 x)
{
    x ^= x >> 32;
    x *= 0x6A09E667F3BCC909ULL;
    x ^= x >> 29;
    x *= 0xBB67AE8584CAA73BULL;
    x ^= x >> 32;
    return x;
}

__device__ static u64 draw_bits(const u64 *key, u64 n) { return mix(mix(key[0] + n * 0x9E3779B97F4A7C15ULL) ^ key[1]); }

__device__ static double uniform(const u64 *key, u64 n) { return (double)((i64)draw_bits(key, n) >> 11) * 0x1p-52; }

__device__ static double logarithm(double x)
{
    const u64 sqrtHalf = 0x3FE6A09E667F3BCDULL;
    u64 word = bits_of(x);
    i64 exponent = (i64)(word - sqrtHalf) >> 52;
    double m = double_of(word - ((u64)exponent << 52));
    double t = (m - 1) / (m + 1);
    double z = t * t, zz = z * z, zzzz = zz * zz;
    double low = 1 + z * (1.0 / 3) + zz * (1.0 / 5 + z * (1.0 / 7));
    double high = 1.0 / 9 + z * (1.0 / 11) + zz * (1.0 / 13 + z * (1.0 / 15));
    double series = low + zzzz * (high + zzzz * (1.0 / 17));
    return (double)exponent * 0.693147180559945309417232121458176568 + 2 * t * series;
}

#define PLACES (1ULL << 63) // where the draws begin that are none of normal's

// A normal value made zero, small or infinite: see tensor.Fill.
__device__ static double sharpened(double x, u64 draw, int infinite)
{
    switch (draw & 7) {
    case 0: x = 0; break;
    case 1: x = double_of(1ULL << 63); break;
    case 2: x *= 0x1p-8; break;
    case 3: x *= 0x1p-16; break;
    case 4: x *= 0x1p-132; break;
    case 5: x *= 0x1p-1040; break;
    }
    if (infinite && (draw >> 3 & 63) == 0)
        x = double_of(0x7FF0000000000000ULL | (draw >> 9 & 1) << 63);
    return x;
}

// Integers that are not quantised are drawn larger, and rounded: see tensor's fill.go. All are held to their bounds.
__device__ static double finished(const Draw &d, double x)
{
    if (!(d.quantized || d.dtype < I8 || d.dtype == E2M1)) {
        int said = d.dist == ZERO || d.dist == ONES;
        x = rint(said ? x : d.dtype == INT4 ? x * 4 : x * 16);
        if ((d.dtype == U8 || d.dtype == U16 || d.dtype == U32 || d.dtype == U64) && x < 0)
            x = -x;
        double least = -1.7976931348623157e308, most = 1.7976931348623157e308;
        switch (d.dtype) {
        case INT4: least = -8, most = 7; break;
        case I8: least = -128, most = 127; break;
        case U8: least = 0, most = 255; break;
        case I16: least = -32768, most = 32767; break;
        case U16: least = 0, most = 65535; break;
        case U32:
        case U64: least = 0; break;
        case BOOL: least = 0, most = 1; break;
        }
        x = (x < least ? least : x > most ? most : x) + 0.0;
    }
    if (d.bounded)
        x = x < d.least ? d.least : x > d.most ? d.most : x;
    return x;
}

// Values that are bounded or in an order: see tensor's order.go.
__device__ static u64 among(const u64 *key, u64 place, u64 n, u64 count)
{
    u64 low = __umul64hi(draw_bits(key, PLACES), n), draw = draw_bits(key, PLACES + 1);
    if (n == 1) {
        if ((draw & 3) < 2)
            return draw & 3 ? count - 1 : 0;
    } else if (place == low) {
        return 0;
    } else if (place == (low + 1 + __umul64hi(draw, n - 1)) % n) {
        return count - 1;
    }
    return __umul64hi(draw_bits(key, place), count);
}

__device__ static double between(const u64 *key, u64 place, double least, double most)
{
    double unit = (uniform(key, place) + 1) * 0.5;
    return least + (most - least) * unit;
}

// What is seldom drawn is not inlined where everything is: that would double the time that all this takes to compile.
__device__ static __noinline__ u64 permuted(const u64 *key, u64 row, u64 place, u64 count)
{
    int half = 1;
    while (1ULL << 2 * half < count)
        half++;
    u64 mask = (1ULL << half) - 1, x = place;
    do {
        u64 left = x >> half, right = x & mask;
        for (u64 round = 0; round < 6; round++) {
            u64 next = left ^ (draw_bits(key, (row * 6 + round) << 27 | right) & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= count);
    return (x + __umul64hi(draw_bits(key, PLACES + row), count)) % count;
}

__device__ static double split(const u64 *key, u64 n, double left, double steps, double total, double least, double most)
{
    u64 draw = draw_bits(key, n);
    double uneven = (double)(draw >> 40) * 0x1p-24, rounding = (double)(draw >> 16 & 0xFFFFFF) * 0x1p-24;
    double cut = floor(total * (left / steps) * (0.5 + uneven) + rounding), right = steps - left;
    if (steps == 2 && (draw & 7) == 0)
        cut = draw & 8 ? total : 0;
    double lowest = left * least, highest = left * most;
    if (total - right * most > lowest)
        lowest = total - right * most;
    if (total - right * least < highest)
        highest = total - right * least;
    cut = cut < lowest ? lowest : cut;
    return cut > highest ? highest : cut;
}

__device__ static __noinline__ double ascending(const u64 *key, u64 row, u64 place, u64 width, double total, double least, double most)
{
    u64 first = 0, last = width - 1;
    double from = 0;
    if (place == first)
        return 0;
    if (place == last)
        return total;
    for (;;) {
        u64 steps = last - first, left = steps / 2, middle = first + left;
        double cut = split(key, PLACES + row * width + middle, (double)left, (double)steps, total, least, most);
        if (place == middle)
            return from + cut;
        if (place < middle) {
            last = middle;
            total = cut;
        } else {
            first = middle;
            from = from + cut;
            total = total - cut;
        }
    }
}

__device__ static __noinline__ double exact(const Draw &d, const u64 *key, u64 i)
{
    int whole = !(d.dtype < I8 || d.dtype == E2M1 || d.quantized);
    u64 count = whole ? (u64)(d.most - d.least) + 1 : 0, row = i / d.width, place = i % d.width;
    switch (d.dist) {
    case UNIFORM: return whole ? d.least + (double)among(key, i, d.elements, count) : between(key, i, d.least, d.most);
    case PERMUTATION: return d.least + (double)permuted(key, row, place, count);
    case OFFSETS: return ascending(key, row, place, d.width, d.total, d.shortest, d.longest);
    case SORTED:
        if (!whole)
            return d.width == 1 ? between(key, i, d.least, d.most)
                                : d.least + (d.most - d.least) * (ascending(key, row, place, d.width, 0x1p52, 0, 0x1p52) * 0x1p-52);
        return d.least + (d.width == 1 ? (double)among(key, i, 1, count)
                                       : ascending(key, row, place, d.width, (double)(count - 1), 0, (double)(count - 1)));
    }
    int masked;
    if (d.dist == CAUSAL) {
        u64 diagonal = i / d.columns % d.rows;
        if (d.columns > d.rows)
            diagonal += d.columns - d.rows;
        masked = i % d.columns > diagonal;
    } else {
        u64 columns = d.columns == 1 ? d.rows : d.columns;
        masked = (double)(draw_bits(key, i) >> 11) * 0x1p-53 < d.share &&
                 (d.whole_rows || i % columns != __umul64hi(draw_bits(key, PLACES + i / columns), columns));
    }
    return whole ? !masked : masked ? double_of(0xFFF0000000000000ULL) : 0;
}

#define LAUNCH (u64)blockIdx.y

// A value of a recording: see tensor's recording.go. The third word of the key is 0 where it is given as it is.
__device__ static __noinline__ double recorded(const Draw &d, const u64 *key, u64 i)
{
    if (!key[2])
        return d.recorded[i];
    const u64 *orders = d.orders + LAUNCH * d.orderStride;
    u64 rest = i, from = 0, scale = 1;
    for (int axis = (int)d.axes - 1; axis >= 0; axis--) {
        u64 n = d.lengths[axis], at = rest % n;
        rest /= n;
        if (d.shuffled[axis])
            at = permuted(orders + 2 * axis, 0, at, n);
        from += at * scale;
        scale *= n;
    }
    double x = d.recorded[from];
    if (d.noise == 0 || (bits_of(x) & 0x7FF0000000000000ULL) == 0x7FF0000000000000ULL)
        return x;
    double factor = 1 + d.noise * uniform(key, i);
    x *= factor;
    return x < d.lowest ? d.lowest : x > d.highest ? d.highest : x;
}

// The two values of a pair of elements, as drawn.
__device__ static void values(const Draw &d, const u64 *key, u64 pair, double out[2])
{
    if (d.recorded) {
        out[0] = recorded(d, key, 2 * pair);
        out[1] = 2 * pair + 1 < d.elements ? recorded(d, key, 2 * pair + 1) : 0;
        return;
    }
    if (d.exact) {
        out[0] = exact(d, key, 2 * pair);
        out[1] = 2 * pair + 1 < d.elements ? exact(d, key, 2 * pair + 1) : 0;
        return;
    }
    double sigma = 1;
    switch (d.dist) {
    case LARGE:
        sigma = 8;
    case NORMAL:
    case DOMINANT:
    case PEAKS:
    case EDGES:
    case INFINITE:
        for (u64 at = pair * 64;; at++) {
            u64 draw = draw_bits(key, at);
            double x = (double)(int)draw * 0x1p-31, y = (double)(int)(draw >> 32) * 0x1p-31;
            double square = x * x + y * y;
            if (!(square < 1 && square > 0))
                continue;
            double factor = sigma * sqrt(-2 * logarithm(square) / square);
            out[0] = x * factor;
            out[1] = y * factor;
            break;
        }
        break;
    case UNIFORM:
        out[0] = uniform(key, 2 * pair);
        out[1] = uniform(key, 2 * pair + 1);
        break;
    case CONSTANT: {
        double x = uniform(key, 0), magnitude = 0.5 + 1.5 * (x < 0 ? -x : x);
        out[0] = out[1] = x < 0 ? -magnitude : magnitude;
        break;
    }
    default:
        out[0] = out[1] = d.dist == ONES ? 1 : 0;
    }
    for (int k = 0; k < 2; k++) {
        u64 i = 2 * pair + k;
        if (d.dist == DOMINANT) {
            u64 row = i / d.columns, matrix = row / d.rows;
            if (row % d.rows == __umul64hi(mix(key[2] + matrix), d.rows))
                out[k] *= 6;
        } else if (d.dist == PEAKS) {
            u64 width = d.columns == 1 ? d.rows : d.columns;
            if (i % width == __umul64hi(draw_bits(key, PLACES + i / width), width))
                out[k] = 128;
        } else if (d.dist == EDGES || d.dist == INFINITE) {
            out[k] = sharpened(out[k], draw_bits(key, PLACES + i), d.dist == INFINITE);
        }
        out[k] = finished(d, out[k] * d.scale);
    }
}

struct Format { int mantissa, bias; unsigned largest, inf, overflow, nan, sign; };

__device__ static Format format(u64 dtype)
{
    switch (dtype) {
    case E4M3: return Format{3, 7, 0x7E, 0, 0x7E, 0x7F, 7};
    case E5M2: return Format{2, 15, 0x7B, 0x7C, 0x7B, 0x7E, 7};
    case E2M1: return Format{1, 1, 0x7, 0, 0x7, 0x7, 3};
    case F16: return Format{10, 15, 0x7BFF, 0x7C00, 0x7C00, 0x7E00, 15};
    default: return Format{7, 127, 0x7F7F, 0x7F80, 0x7F80, 0x7FC0, 15};
    }
}

__device__ static unsigned code_of(const Format &f, double x)
{
    u64 word = bits_of(x), abs = word & 0x7FFFFFFFFFFFFFFFULL;
    unsigned sign = (unsigned)(word >> 63) << f.sign;
    if (abs > 0x7FF0000000000000ULL)
        return f.nan;
    if (abs < (u64)(1024 - f.bias) << 52) {
        u64 spacing = (u64)(1024 - f.bias - f.mantissa + 52) << 52;
        return sign | (unsigned)(bits_of(double_of(abs) + double_of(spacing)) - spacing);
    }
    int drop = 52 - f.mantissa;
    u64 half = (1ULL << (drop - 1)) - 1 + (abs >> drop & 1);
    u64 rounded = ((abs + half) >> drop) - ((u64)(1023 - f.bias) << f.mantissa);
    return sign | (rounded > f.largest ? f.overflow : (unsigned)rounded);
}

__device__ static double value_of(const Format &f, unsigned code)
{
    unsigned abs = code & ~(1u << f.sign);
    u64 sign = (u64)(code >> f.sign & 1) << 63;
    if (abs > f.largest)
        return double_of(abs != f.inf ? 0x7FF8000000000001ULL : 0x7FF0000000000000ULL | sign);
    return double_of(sign | (u64)abs << (52 - f.mantissa)) * double_of((u64)(2046 - f.bias) << 52);
}

__device__ static i64 integer(double x, double least, double most)
{
    return x >= most ? (i64)most : x <= least ? (i64)least : x != x ? 0 : (i64)rint(x);
}

// Half a byte, the low one first. One thread writes both.
__device__ static void put_nibble(byte *array, u64 i, unsigned code)
{
    if (i % 2 == 0)
        array[i / 2] = (byte)(code & 15);
    else
        array[i / 2] |= (byte)(code << 4);
}

__device__ static void encode(byte *array, u64 dtype, u64 i, double x)
{
    switch (dtype) {
    case INT4: put_nibble(array, i, (unsigned)integer(x, -8, 7)); break;
    case E2M1: put_nibble(array, i, code_of(format(dtype), x)); break;
    case E4M3:
    case E5M2: array[i] = (byte)code_of(format(dtype), x); break;
    case F16:
    case BF16: ((unsigned short *)array)[i] = (unsigned short)code_of(format(dtype), x); break;
    case F32: ((float *)array)[i] = (float)x; break;
    case F64: ((double *)array)[i] = x; break;
    case I8: ((signed char *)array)[i] = (signed char)integer(x, -128, 127); break;
    case U8: array[i] = (byte)integer(x, 0, 255); break;
    case I32: ((int *)array)[i] = (int)integer(x, -2147483648.0, 2147483647.0); break;
    case I16: ((short *)array)[i] = (short)integer(x, -32768, 32767); break;
    case U16: ((unsigned short *)array)[i] = (unsigned short)integer(x, 0, 65535); break;
    case U32: ((unsigned *)array)[i] = (unsigned)integer(x, 0, 4294967295.0); break;
    case U64: ((u64 *)array)[i] = !(x > 0) ? 0 : x >= 18446744073709551616.0 ? 0xFFFFFFFFFFFFFFFFULL : (u64)rint(x); break;
    case BOOL: array[i] = (byte)integer(x, 0, 1); break;
    default: ((i64 *)array)[i] = x >= 9223372036854775808.0 ? 0x7FFFFFFFFFFFFFFFLL : x < -9223372036854775808.0 ? (i64)0x8000000000000000ULL : x != x ? 0 : (i64)rint(x);
    }
}

__device__ static double decode(const byte *array, u64 dtype, u64 i)
{
    switch (dtype) {
    case INT4: return (double)((int)((array[i / 2] >> i % 2 * 4 & 15) ^ 8) - 8);
    case E2M1: return value_of(format(dtype), array[i / 2] >> i % 2 * 4 & 15);
    case E4M3:
    case E5M2: return value_of(format(dtype), array[i]);
    case F16: return value_of(format(dtype), ((const unsigned short *)array)[i]);
    case BF16: return (double)float_of((unsigned)((const unsigned short *)array)[i] << 16);
    case F32: return (double)((const float *)array)[i];
    case F64: return ((const double *)array)[i];
    case I8: return (double)((const signed char *)array)[i];
    case U8: return (double)array[i];
    case I32: return (double)((const int *)array)[i];
    case I16: return (double)((const short *)array)[i];
    case U16: return (double)((const unsigned short *)array)[i];
    case U32: return (double)((const unsigned *)array)[i];
    case U64: return (double)((const u64 *)array)[i];
    case BOOL: return (double)array[i];
    default: return (double)((const i64 *)array)[i];
    }
}

// The struct that element i is a member of; all of an array that is none is one struct.
__device__ static u64 struct_of(const Draw &d, u64 i) { return i / d.count * d.pitch; }

__device__ static u64 group_of(const Grouping &g, u64 element)
{
    u64 rest = element / g.run, group = 0;
    for (int axis = (int)g.axes - 1; axis >= 0; axis--) {
        group += rest % g.lengths[axis] * g.strides[axis];
        rest /= g.lengths[axis];
    }
    return group;
}

__device__ static double scale_of(const Draw &d, u64 launch, u64 group)
{
    float absmax = (float)double_of(d.maxima[launch * d.groups + group]);
    if (absmax == 0)
        return 1;
    float scale = absmax / (float)d.largest;
    return (double)(scale < 0x1p-126f ? 0x1p-126f : scale);
}

#define THREAD ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define THREADS ((u64)gridDim.x * blockDim.x)

// Most values are no maximum: looking first spares the others from waiting in line.
__device__ static void raise_to(u64 *to, u64 value)
{
    if (value > *(volatile u64 *)to)
        atomicMax(to, value);
}

enum { SPAN = 8 }; // pairs that a thread of find_maxima takes at a time

// Draws what is going to be quantised, and finds the largest magnitude of every
// group; maxima are zero before.
extern "C" __global__ void find_maxima(Draw d)
{
    const u64 *key = d.keys + LAUNCH * d.keyStride;
    u64 *maxima = d.maxima + LAUNCH * d.groups, mine = 0, group = 0;
    double *drawn = d.drawn + LAUNCH * d.elements, value[2];
    // A block takes neighbours, so that its threads meet few groups.
    u64 span = blockDim.x * SPAN, step = 0;
    for (u64 at = blockIdx.x * span; at < d.elements; step++) {
        u64 pair = at + step % SPAN * blockDim.x + threadIdx.x;
        if (step % SPAN == SPAN - 1)
            at += gridDim.x * span;
        if (2 * pair >= d.elements)
            continue;
        values(d, key, pair, value);
        for (u64 k = 0; k < 2 && 2 * pair + k < d.elements; k++) {
            u64 g = group_of(d.grouping, 2 * pair + k), magnitude = bits_of(value[k]) & 0x7FFFFFFFFFFFFFFFULL;
            drawn[2 * pair + k] = value[k];
            if (g != group) {
                raise_to(&maxima[group], mine);
                group = g;
                mine = 0;
            }
            mine = magnitude > mine ? magnitude : mine;
        }
    }
    raise_to(&maxima[group], mine);
}

extern "C" __global__ void draw(Draw d)
{
    const u64 *key = d.keys + LAUNCH * d.keyStride;
    const double *drawn = d.drawn + LAUNCH * d.elements;
    byte *array = d.slots + LAUNCH * d.stride + d.offset;
    double value[2];
    for (u64 pair = THREAD; 2 * pair < d.elements; pair += THREADS) {
        if (!d.quantized)
            values(d, key, pair, value);
        for (u64 k = 0; k < 2 && 2 * pair + k < d.elements; k++) {
            u64 i = 2 * pair + k;
            double x = d.quantized ? drawn[i] / scale_of(d, LAUNCH, group_of(d.grouping, i)) : value[k];
            encode(array + struct_of(d, i), d.dtype, i % d.count, x);
        }
    }
}

// The argument that holds the scales of the one that d draws.
extern "C" __global__ void write_scales(Draw d, u64 offset, u64 dtype)
{
    byte *array = d.slots + LAUNCH * d.stride + offset;
    for (u64 g = THREAD; g < d.groups; g += THREADS)
        encode(array, dtype, g, scale_of(d, LAUNCH, g));
}

// The same argument as the reference sees it: real numbers, scales applied, as
// float or double; with original, as they were drawn, before they were quantised.
extern "C" __global__ void widen(Draw d, byte *to, u64 stride, u64 offset, u64 dtype, u64 original)
{
    const u64 *key = d.keys + LAUNCH * d.keyStride;
    const byte *from = d.slots + LAUNCH * d.stride + d.offset;
    byte *out = to + LAUNCH * stride + offset;
    double value[2];
    for (u64 pair = THREAD; 2 * pair < d.elements; pair += THREADS) {
        if (original && d.quantized)
            values(d, key, pair, value);
        for (u64 k = 0; k < 2 && 2 * pair + k < d.elements; k++) {
            u64 i = 2 * pair + k;
            double x = value[k];
            if (!(original && d.quantized)) {
                x = decode(from + struct_of(d, i), d.dtype, i % d.count);
                if (d.quantized)
                    x *= scale_of(d, LAUNCH, group_of(d.grouping, i));
            }
            if (dtype == F32)
                ((float *)out)[i] = (float)x;
            else
                ((double *)out)[i] = x;
        }
    }
}

// Copies slot blockIdx.y % launches to the blockIdx.y-th place. Sizes are
// multiples of 16.
extern "C" __global__ void scatter(const byte *slots, u64 stride, u64 size, byte *const *places, u64 launches)
{
    const uint4 *from = (const uint4 *)(slots + LAUNCH % launches * stride);
    uint4 *to = (uint4 *)places[LAUNCH];
    for (u64 i = THREAD; i < size / 16; i += THREADS)
        to[i] = from[i];
}

// Reads the places, so that the L2 cache has them. The reads are volatile: no compiler leaves them out, and they pass the L1 cache.
extern "C" __global__ void fill_cache(u64 size, byte *const *places)
{
    const volatile unsigned *from = (const volatile unsigned *)places[LAUNCH];
    const u64 sector = 32; // is what a miss brings
    for (u64 i = THREAD; i < size / sector; i += THREADS)
        (void)from[i * (sector / sizeof(unsigned))];
}

struct Span { u64 from, to; };
struct Spans { u64 count; Span span[16]; };

// Where, beside the outputs, a slot is not what scatter left there: the first
// such byte of each launch, or what first[launch] was before.
extern "C" __global__ void untouched(const byte *slots, u64 stride, u64 size, byte *const *places, Spans outputs, u64 *first)
{
    const uint4 *want = (const uint4 *)(slots + LAUNCH * stride), *have = (const uint4 *)places[LAUNCH];
    for (u64 i = THREAD; i < size / 16; i += THREADS) {
        uint4 a = want[i], b = have[i];
        if (a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w)
            continue;
        for (u64 at = 16 * i; at < 16 * i + 16; at++) {
            if (((const byte *)want)[at] == ((const byte *)have)[at])
                continue;
            u64 allowed = 0;
            for (u64 s = 0; s < outputs.count; s++)
                allowed |= at >= outputs.span[s].from && at < outputs.span[s].to;
            if (!allowed) {
                atomicMin(&first[LAUNCH], at);
                break;
            }
        }
    }
}

// One output against another, or against the reference's floats.
struct Values {
    byte *const *slots;             // by launch
    u64 offset, dtype;
    u64 count, pitch;               // as in Draw
};
struct Compare {
    Values got, want;
    u64 elements;
    double abs, rel;                // an element is bad beyond abs + rel * |want|
    double *partial;                // FIGURES for each thread of each launch
};

enum { MAX_ABS, SUM_ABS, SUM_DIFFERENCE, SUM_WANT, COMPARED, BAD, NAN_COUNT, INF_COUNT, UNWRITTEN, DIFFERENT, FIGURES };

__device__ static int poisoned(const byte *array, u64 dtype, u64 i)
{
    switch (dtype) {
    case E4M3: return array[i] == 0xFF;
    case E5M2: return array[i] == 0xFD;
    case F16: return ((const unsigned short *)array)[i] == 0xFDA5;
    case BF16: return ((const unsigned short *)array)[i] == 0xFFA5;
    case F32: return ((const unsigned *)array)[i] == 0xFFA5A5A5u;
    case F64: return ((const u64 *)array)[i] == 0xFFF5A5A5FFF5A5A5ULL;
    case I8:
    case U8:
    case BOOL: return array[i] == 0xA5;
    case I16:
    case U16: return ((const unsigned short *)array)[i] == 0xA5A5;
    case I32:
    case U32: return ((const unsigned *)array)[i] == 0xA5A5A5A5u;
    case INT4:
    case E2M1: return ((array[i / 2] ^ 0xA5) >> i % 2 * 4 & 15) == 0;
    default: return ((const u64 *)array)[i] == 0xA5A5A5A5A5A5A5A5ULL;
    }
}

__device__ static int is_finite(double x) { return (bits_of(x) & 0x7FF0000000000000ULL) != 0x7FF0000000000000ULL; }

extern "C" __global__ void compare(Compare c)
{
    const byte *allGot = c.got.slots[LAUNCH] + c.got.offset, *allWant = c.want.slots[LAUNCH] + c.want.offset;
    double f[FIGURES] = {0};
    for (u64 i = THREAD; i < c.elements; i += THREADS) {
        const byte *got = allGot + i / c.got.count * c.got.pitch, *want = allWant + i / c.want.count * c.want.pitch;
        u64 at = i % c.got.count;
        double g = decode(got, c.got.dtype, at), w = decode(want, c.want.dtype, i % c.want.count), diff = g > w ? g - w : w - g;
        // The poison of an integer may be its right value, so that only that of a float means that nobody wrote it.
        f[DIFFERENT] += bits_of(g) != bits_of(w) || (g != g && poisoned(got, c.got.dtype, at));
        if (!is_finite(g) || !is_finite(w)) {
            if (poisoned(got, c.got.dtype, at)) {
                f[UNWRITTEN]++;
                f[BAD]++;
            } else if (!(g == w || (g != g && w != w))) {
                f[NAN_COUNT] += g != g;
                f[INF_COUNT] += g == g && !is_finite(g);
                f[BAD]++;
            }
            continue;
        }
        double limit = c.rel * (w < 0 ? -w : w);
        if (!(diff <= c.abs + limit)) {
            f[BAD]++;
            if (poisoned(got, c.got.dtype, at)) {
                f[UNWRITTEN]++;
                continue;
            }
        }
        f[MAX_ABS] = diff > f[MAX_ABS] ? diff : f[MAX_ABS];
        f[COMPARED]++;
        f[SUM_ABS] += diff;
        f[SUM_DIFFERENCE] += diff * diff;
        f[SUM_WANT] += w * w;
    }
    for (int k = 0; k < FIGURES; k++)
        c.partial[(LAUNCH * THREADS + THREAD) * FIGURES + k] = f[k];
}

// Adds up what `each` neighbouring threads of compare found.
extern "C" __global__ void gather(const double *partial, double *sums, u64 each)
{
    const double *from = partial + (LAUNCH * THREADS + THREAD) * each * FIGURES;
    double *to = sums + (LAUNCH * THREADS + THREAD) * FIGURES;
    for (int k = 0; k < FIGURES; k++) {
        double sum = 0;
        for (u64 i = 0; i < each; i++)
            sum = k == MAX_ABS ? (from[i * FIGURES + k] > sum ? from[i * FIGURES + k] : sum) : sum + from[i * FIGURES + k];
        to[k] = sum;
    }
}
