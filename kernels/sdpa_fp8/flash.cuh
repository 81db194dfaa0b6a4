// The flash-attention step of one warp on mma.sync, for stages 3b and later:
// 16 queries against a tile of K and V codes in shared memory, with scores,
// weights and output in registers.
//
// In a warp, lane = 4*g + t holds rows g and g+8. Codes become FP16 operands
// in registers, without a shuffle:
//   K  ldmatrix hands a lane 4 neighbouring codes of one key. They are taken as
//      columns 2t, 2t+1, 2t+8, 2t+9 of the product; Q is loaded in the same
//      order, and a sum does not mind.
//   V  ldmatrix.trans hands a lane a 2x2 block: keys 2t, 2t+1, columns 2g,
//      2g+1. One byte permute makes two operands of it: even columns go to one
//      tile of O, odd ones to the next, so that a lane ends with 4 neighbouring
//      columns of O.
#pragma once

#include "common.cuh"

// Rows of codes lie unpadded; their 16-byte chunks are exchanged by XOR so that
// 8 rows' chunks fall on different banks (for D = 64, as the 64-byte swizzle of
// the tensor cores has it). USE_XOR_SWIZZLE=0 leaves them in place.
#ifndef USE_XOR_SWIZZLE
#define USE_XOR_SWIZZLE 1
#endif

// Tiles are aligned to 128 bytes: from the address of chunk 0, that of chunk c is
// at XOR 16*c, which costs no register between loads.
template <int D>
__device__ __forceinline__ int code_at(int row, int chunk) {
    if (!USE_XOR_SWIZZLE) return row * D + 16 * chunk;
    return row * D + 16 * (chunk ^ (D == 64 ? row / 2 % 4 : row % 8));
}

__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void mma_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_e4m3(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <bool FAST>
__device__ __forceinline__ float power_of_two(float x) {
    return FAST ? exp2_fast(x) : exp2f(x);
}

// Starts the copies of KEYS rows of K and V codes by THREADS threads. A whole
// tile needs no look at each row, and where the swizzle repeats from piece to
// piece one address does for all: what is waited for first is asked for sooner.
template <int D, int KEYS, int THREADS>
__device__ __forceinline__ void copy_keys(uint32_t k_tile, uint32_t v_tile, const uint8_t* k, const uint8_t* v, int first, int S, int thread) {
    constexpr int CHUNKS = D / 16, PIECES = KEYS * CHUNKS / THREADS, STRIDE = 16 * THREADS;
    if (STRIDE % (8 * D) == 0 && first + KEYS <= S) {
        int to = code_at<D>(thread / CHUNKS, thread % CHUNKS), from = first * D + 16 * thread;
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            copy16_async(k_tile + to + i * STRIDE, k + from + i * STRIDE);
            copy16_async(v_tile + to + i * STRIDE, v + from + i * STRIDE);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        int piece = thread + i * THREADS, row = piece / CHUNKS, chunk = piece % CHUNKS;
        bool valid = first + row < S;
        int from = (valid ? first + row : 0) * D + 16 * chunk;
        int to = code_at<D>(row, chunk);
        copy16_async(k_tile + to, k + from, valid);
        copy16_async(v_tile + to, v + from, valid);
    }
}

// The head and the tile of queries of this block. The block's number is read
// anew each time, so that asking again at the end costs no register meanwhile.
struct Place {
    int head, block;
    __device__ __forceinline__ Place(int S, int rows) {
        int number, blocks = (S + rows - 1) / rows;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(number));
        head = number / blocks;
        block = number % blocks;
    }
};

// What a warp knows of its 16 queries. Q's codes stay in shared memory: scores,
// output and what they need fill the registers.
template <int D, bool FP8>
struct Rows {
    uint32_t q; // address of this lane's first row of Q
    float o[D / 8][4];
    float top[2], sum[2]; // of rows g and g+8; sum is this lane's part

    // Brings Q into room (16*D bytes of the warp's own) and clears the rest.
    __device__ __forceinline__ void start(const uint8_t* codes, int first, int S, uint32_t room) {
        int lane = threadIdx.x % 32;
        q = room + code_at<D>(lane % 16, lane / 16);
        clear();
        __syncwarp();
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
            int piece = lane + 32 * i, row = piece / (D / 16), chunk = piece % (D / 16);
            uint4 x = make_uint4(0, 0, 0, 0);
            if (first + row < S) x = *reinterpret_cast<const uint4*>(codes + (first + row) * D + 16 * chunk);
            asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(room + code_at<D>(row, chunk)), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
        }
        __syncwarp();
    }

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < D / 8; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) o[i][j] = 0;
        top[0] = top[1] = LOWEST;
        sum[0] = sum[1] = 0;
    }

    // s = Q·Kᵀ for KEYS keys, unscaled. Four products in a row go to four tiles,
    // so that none waits for the one before it.
    template <int KEYS>
    __device__ __forceinline__ void scores(float (&s)[KEYS / 8][4], uint32_t k_tile) const {
        uint32_t mine = k_tile + code_at<D>(threadIdx.x % 32, 0);
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++) s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0;
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
            uint32_t a[4];
            load_matrices(a, q ^ 32 * i);
#pragma unroll
            for (int j = 0; j < KEYS / 32; j++) {
                uint32_t b[4], c[4];
                load_matrices(b, (mine ^ 32 * i) + 32 * j * D);
                load_matrices(c, (mine ^ 32 * i ^ 16) + 32 * j * D);
                if constexpr (FP8) {
#pragma unroll
                    for (int n = 0; n < 4; n++) mma_e4m3(s[4 * j + n], a, b[n], c[n]);
                } else {
                    uint32_t near[4] = {decode_low(a[0]), decode_low(a[1]), decode_high(a[0]), decode_high(a[1])};
                    uint32_t far[4] = {decode_low(a[2]), decode_low(a[3]), decode_high(a[2]), decode_high(a[3])};
#pragma unroll
                    for (int n = 0; n < 4; n++) mma_f16(s[4 * j + n], near, decode_low(b[n]), decode_high(b[n]));
#pragma unroll
                    for (int n = 0; n < 4; n++) mma_f16(s[4 * j + n], far, decode_low(c[n]), decode_high(c[n]));
                }
            }
        }
    }

    // Takes out the keys that a query may not see: those from S on, and with
    // causal those after it.
    template <int KEYS>
    static __device__ __forceinline__ void mask(float (&s)[KEYS / 8][4], int first_row, int first_key, int S, bool causal) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int key = first_key + 8 * j + 2 * t + i % 2, row = first_row + g + i / 2 * 8;
                if (key >= S || causal && key > row) s[j][i] = -INFINITY;
            }
    }

    // Scores become weights relative to the rows' new maximum, to which sum and
    // o are brought too.
    template <int KEYS, bool FAST>
    __device__ __forceinline__ void softmax(float (&s)[KEYS / 8][4], float scale) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float best = s[0][2 * r];
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) best = fmaxf(best, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
            best = fmaxf(top[r], quad_max(best));
            float rescale = power_of_two<FAST>((top[r] - best) * scale), shift = best * scale, part = 0;
            top[r] = best;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
                for (int i = 2 * r; i < 2 * r + 2; i++) {
                    s[j][i] = power_of_two<FAST>(s[j][i] * scale - shift);
                    part += s[j][i];
                }
            sum[r] = sum[r] * rescale + part;
#pragma unroll
            for (int j = 0; j < D / 8; j++) {
                o[j][2 * r] *= rescale;
                o[j][2 * r + 1] *= rescale;
            }
        }
    }

    // o += P·V, the weights rounded to FP16.
    template <int KEYS>
    __device__ __forceinline__ void accumulate(const float (&s)[KEYS / 8][4], uint32_t v_tile) {
        uint32_t mine = v_tile + code_at<D>(threadIdx.x % 16, threadIdx.x % 32 / 16);
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            uint32_t p[4] = {pack_half2(s[2 * j][0], s[2 * j][1]), pack_half2(s[2 * j][2], s[2 * j][3]),
                             pack_half2(s[2 * j + 1][0], s[2 * j + 1][1]), pack_half2(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
            for (int c = 0; c < D / 32; c++) {
                uint32_t b[4];
                load_matrices_transposed(b, (mine ^ 32 * c) + 16 * j * D);
#pragma unroll
                for (int n = 0; n < 2; n++) {
                    uint32_t near = __byte_perm(b[2 * n], 0, 0x3120), far = __byte_perm(b[2 * n + 1], 0, 0x3120);
                    mma_f16(o[4 * c + 2 * n], p, decode_low(near), decode_low(far));
                    mma_f16(o[4 * c + 2 * n + 1], p, decode_high(near), decode_high(far));
                }
            }
        }
    }

    // Divides by the sum and writes the rows that exist.
    __device__ __forceinline__ void finish(__half* out, int first, int S, float v_scale) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float norm = v_scale / quad_sum(sum[r]);
            int row = first + g + 8 * r;
            if (row >= S) continue;
            __half* to = out + (size_t)row * D + 4 * t;
#pragma unroll
            for (int c = 0; c < D / 16; c++)
                *reinterpret_cast<uint2*>(to + 16 * c) =
                    make_uint2(pack_half2(o[2 * c][2 * r] * norm, o[2 * c + 1][2 * r] * norm),
                               pack_half2(o[2 * c][2 * r + 1] * norm, o[2 * c + 1][2 * r + 1] * norm));
        }
    }
};
