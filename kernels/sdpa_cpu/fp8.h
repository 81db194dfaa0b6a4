/*
 * The number formats of the kernel, and the vector of floats that the later stages compute with.
 *
 * FP8 E4M3 (OCP "FN"): sign, 4 exponent bits (bias 7), 3 mantissa bits; no infinities, S.1111.111 is NaN, largest
 * value 448, smallest 2^-9. FP16: IEEE binary16, rounded to nearest even. Both are done with integer arithmetic
 * and exact float operations, so that every compiler and machine gives the same bits.
 */
#ifndef SDPA_FP8_H
#define SDPA_FP8_H

#include <stdint.h>
#include <string.h>

static inline float float_from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t bits_from_float(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* The value of an E4M3 code. A subnormal m·2^-9 is (1 + m/8)·2^-6 - 2^-6: no float subnormal ever appears, which
 * would be slow on some machines and flushed to zero on others. Masks instead of branches, so that the time does not
 * depend on the data. */
static inline float e4m3_decode(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 0x80) << 24;
    uint32_t magnitude = code & 0x7f;
    uint32_t subnormal = magnitude < 8, nan = magnitude == 0x7f;

    float value = float_from_bits((magnitude << 20) + ((120 + subnormal) << 23));
    value -= float_from_bits(-subnormal & 0x3c800000u); /* 2^-6 */
    return float_from_bits(bits_from_float(value) | (-nan & 0x7fc00000u) | sign);
}

/* FP16 bits of x, to nearest even: overflow from 65520 up gives infinity, NaN stays a (quiet) NaN. */
static inline uint16_t f16_from_float(float x)
{
    uint32_t u = bits_from_float(x);
    uint32_t sign = (u >> 16) & 0x8000u;
    uint32_t magnitude = u & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x47800000u) /* 65536 */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* 2^-14: one ulp of 0.5f is one ulp of a subnormal, so the addition rounds */
        float shifted = float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (bits_from_float(shifted) - 0x3f000000u));
    }
    /* Half of the last place less one, plus the last kept bit, carries exactly when nearest-even rounds up. */
    magnitude += 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((magnitude - (112u << 23)) >> 13));
}

/* A vector as wide as the machine's registers, by the compilers' vector extension: the same source for SSE, AVX,
 * AVX-512 and NEON. */
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));

static inline vec vec_load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vec_store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

static inline vec vec_splat(float x)
{
    return x - (vec){0};
}

/* Lane by lane, yes where mask is all ones, no where it is zero. */
static inline vec vec_select(ivec mask, vec yes, vec no)
{
    return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

static inline vec vec_max(vec a, vec b)
{
    return vec_select(a > b, a, b);
}

/* 2^x for x <= 0, relative error below 2e-7. x = n + r with |r| <= 1/2: adding 1.5·2^23 leaves n in the low bits of the
 * sum, and 2^r is its Taylor series to r^7. Below -126 the result stays at 2^-126, which is nothing beside the 1 that
 * every softmax row has; NaN passes through. */
static inline vec vec_exp2(vec x)
{
    const vec lowest = vec_splat(-126.0f);
    const float round = 0x1.8p23f;

    x = vec_select(x < lowest, lowest, x);
    vec shifted = x + round;
    vec r = x - (shifted - round);
    ivec n = (ivec)shifted - (ivec)vec_splat(round);

    vec y = vec_splat(1.5252734e-5f);
    y = y * r + 1.5403530e-4f;
    y = y * r + 1.3333558e-3f;
    y = y * r + 9.6181291e-3f;
    y = y * r + 5.5504109e-2f;
    y = y * r + 2.4022651e-1f;
    y = y * r + 6.9314718e-1f;
    y = y * r + 1.0f;
    return y * (vec)((n + 127) << 23);
}

#endif
