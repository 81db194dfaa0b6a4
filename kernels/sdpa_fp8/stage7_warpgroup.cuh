// What a consumer warpgroup of stage 7 has: its queries, its weights and output, and how it gives tiles back.
#pragma once

#include "stage7.cuh"

// A warpgroup's 64 queries: codes or FP16.
template <Mode MODE>
struct Queries {
    uint32_t stored;
    uint64_t operand;

    __device__ __forceinline__ void load(uint32_t room, const uint8_t* q, int first, int S, int group) {
        constexpr int CHUNKS = DIM / 16;
        stored = room + Shared::Q + group * (128 * DIM);
        // A warp's threads load its own 16 rows.
        constexpr int PIECES = DIM / 32;
        uint4 x[PIECES];
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            int piece = threadIdx.x % 32 + 32 * i, row = threadIdx.x / 32 % 4 * 16 + piece / CHUNKS;
            x[i] = __ldg(reinterpret_cast<const uint4*>(q + (size_t)min(first + row, S - 1) * DIM) + piece % CHUNKS);
        }
        asm volatile("bar.sync %0, 128;" ::"r"(group + 8) : "memory"); // every warp is done with the last queries
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            int piece = threadIdx.x % 32 + 32 * i, row = threadIdx.x / 32 % 4 * 16 + piece / CHUNKS, chunk = piece % CHUNKS;
            if (MODE == HALVES_ONLY) decode_into(stored + halves_at(row, chunk), x[i]);
            else store_shared(stored + code_at<DIM>(row, chunk), x[i].x, x[i].y, x[i].z, x[i].w);
        }
        fence_to_tensor_cores();
        asm volatile("bar.sync %0, 128;" ::"r"(group + 8) : "memory");
        operand = MODE == HALVES_ONLY ? operand_at<128>(stored) : operand_at<DIM>(stored);
    }

    // s = Q·Kᵀ of a tile, begun.
    __device__ __forceinline__ void begin_scores(float (&s)[32], uint32_t k_tile) const {
        uint64_t k = MODE == HALVES_ONLY ? operand_at<128>(k_tile) : operand_at<DIM>(k_tile);
        wgmma_fence();
        if constexpr (MODE == HALVES_ONLY) {
#pragma unroll
            for (int i = 0; i < DIM / 16; i++)
                wgmma_scores_f16(s, operand_after(operand, i / 4 * (64 * 128) + i % 4 * 32), operand_after(k, i / 4 * (KEYS * 128) + i % 4 * 32), i > 0);
        } else {
#pragma unroll
            for (int i = 0; i < DIM / 32; i++) wgmma_scores(s, operand_after(operand, 32 * i), operand_after(k, 32 * i), i > 0);
        }
        wgmma_commit();
    }

    // What the producer says of the halves of tile `number`. Lane 0 looks, because it gives the tile back; before products begin,
    // which would delay the answer.
    __device__ __forceinline__ void load_marks(uint32_t (&mark)[2], uint32_t room, uint32_t number) const {
        mark[0] = mark[1] = 0;
        if (MODE == CODES_MOSTLY && threadIdx.x % 32 == 0)
            asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(mark[0]), "=r"(mark[1]) : "r"(room + Shared::LARGE + 8 * (number % STAGES)) : "memory");
    }

    // Which halves have keys so large that their products are not to be trusted: a bit for each.
    __device__ __forceinline__ uint32_t large_halves(const uint32_t (&mark)[2], uint32_t number) const {
        if (MODE != CODES_MOSTLY) return 0;
        uint32_t halves = __any_sync(0xffffffffu, mark[0] == number + 1) + 2 * __any_sync(0xffffffffu, mark[1] == number + 1);
        asm volatile("" : "+r"(halves)::"memory");
        return halves;
    }

    // This warp's scores of those halves again. Returns whether its lanes may have read the tile.
    __device__ __forceinline__ bool correct_scores(float (&s)[32], uint32_t room, uint32_t number, uint32_t halves) const {
        if (MODE != CODES_MOSTLY) return false;
        if (halves == 0) return DIM == 64; // there is no register to remember it in
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (halves >> i & 1) exact_scores<DIM, 32>(reinterpret_cast<float(&)[16]>(s[16 * i]), stored, room + Shared::K + number % STAGES * HALVES + 32 * i * DIM);
        return true;
    }

    // This warp's scores of a tile, with FP16 products (mma.sync).
    __device__ __forceinline__ void compute_again(float (&s)[32], uint32_t room, uint32_t number) const {
        uint32_t k_tile = room + Shared::K + number % STAGES * HALVES;
#pragma unroll
        for (int i = 0; i < DIM / 64; i++) exact_scores<DIM>(reinterpret_cast<float(&)[TILE / DIM / 2]>(s[i * (TILE / DIM / 2)]), stored, k_tile + i * TILE);
    }
};

__device__ __forceinline__ void begin_values(float (&o)[WIDTH], const uint32_t (&weights)[16], uint32_t v_tile, uint32_t ones) {
    uint64_t v = operand_at<128>(v_tile, ONES ? ones - v_tile : KEYS * 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) wgmma_values(o, {weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3]}, operand_after(v, 2048 * i), 1);
    wgmma_commit();
}

// Takes out the keys that a query may not see. first: the warpgroup's first row.
__device__ __forceinline__ void mask_tile(float (&s)[32], int key, int first, int S, bool causal) {
    if (key + KEYS <= S && !(causal && key + KEYS > first + 1)) return;
    int thread = thread_index(), lane = thread % 32;
#pragma unroll
    for (int i = 0; i < 32; i++) {
        int at = key + i / 4 * 8 + lane % 4 * 2 + i % 2, row = first + thread / 32 % 4 * 16 + lane / 4 + i / 2 % 2 * 8;
        if (at >= S || causal && at > row) s[i] = -INFINITY;
    }
}

// exp2 of x <= 0 without the special-function unit, right within 2^-13.7.
__device__ __forceinline__ float exp2_polynomial(float x) {
    x = fmaxf(x, -126);
    float rounded = x + 12582912.f, f = x - (rounded - 12582912.f); // 1.5·2^23: what is added has no bits behind the point
    float y = 0.99992807f + f * (0.69326099f + f * (0.24261116f + f * 0.05517168f));
    return __int_as_float((__float_as_int(rounded) << 23) + __float_as_int(y));
}

// What a warp knows of its 16 queries. Weights are 2^(score·scale − shift).
struct Output {
    float o[WIDTH], shift[2], sum[2];
    bool moved;       // the reference, since the last product
    float rescale[2]; // what O is to be multiplied with then; in shared memory where registers are short

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < WIDTH; i++) o[i] = 0;
        shift[0] = shift[1] = sum[0] = sum[1] = 0;
    }

    // Scores become exponents. FIRST: of the first tile, which sets the reference. Where the reference moves later, O is multiplied
    // after the product that is under way: all warps of a warpgroup wait for that in one place.
    template <bool FIRST>
    __device__ __forceinline__ void to_exponents(float (&s)[32], float scale, uint32_t room) {
        uint32_t sign[4];
#pragma unroll
        for (int i = 0; i < 32; i++) s[i] = FIRST ? s[i] * scale : s[i] * scale - shift[i / 2 % 2];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sign[i] = __float_as_uint(s[8 * i]);
#pragma unroll
            for (int j = 1; j < 8; j++) sign[i] &= __float_as_uint(s[8 * i + j]);
        }
        if (FIRST || __any_sync(0xffffffffu, !((sign[0] & sign[1] & sign[2] & sign[3]) >> 31))) {
            float best[2];
            row_maxima(s, best);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float raise = best[r] + (HEADROOM_BITS - 1);
                if (!FIRST) {
                    raise = fmaxf(raise, 0);
                    scale_later(r, exp2_fast(-raise), room);
                }
                shift[r] += raise;
#pragma unroll
                for (int i = 0; i < 16; i++) s[i / 2 * 4 + 2 * r + i % 2] -= raise;
            }
        }
    }

    // A row's reference moved: the sum is multiplied at once, and O after the product with V that is under way.
    __device__ __forceinline__ void scale_later(int r, float by, uint32_t room) {
        rescale[r] = by;
        sum[r] *= by;
        if (DIM == 64) asm volatile("st.shared.f32 [%0], %1;" ::"r"(room + Shared::RESCALE + 8 * thread_index() + 4 * r), "f"(by) : "memory");
        moved = true;
    }

    // After the product with V.
    __device__ __forceinline__ void rescale_output(uint32_t room) {
        hold(o);
        if (!moved) return;
        if (DIM == 64) asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(rescale[0]), "=f"(rescale[1]) : "r"(room + Shared::RESCALE + 8 * thread_index()) : "memory");
#pragma unroll
        for (int i = 0; i < WIDTH; i++) o[i] *= rescale[i / 2 % 2];
    }

    // Scores become weights, in place, unless one would reach 1: then the scores are lost.
    __device__ __forceinline__ bool try_weights(float (&s)[32], float scale) {
        uint32_t sign[4];
        float part[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 32; i++) {
            float e = s[i] * scale - shift[i / 2 % 2];
            sign[i % 4] = i < 4 ? __float_as_uint(e) : sign[i % 4] & __float_as_uint(e);
            s[i] = exp2_fast(e);
            if (!ONES) part[i / 2 % 4] += s[i];
        }
        bool fits = !__any_sync(0xffffffffu, !((sign[0] & sign[1] & sign[2] & sign[3]) >> 31));
        if (!ONES && fits) sum[0] += part[0] + part[2], sum[1] += part[1] + part[3];
        hold(s);
        return fits;
    }

    // FP16 scores, which are far apart, become weights in place. Few of them count, so sixteen keys at a time are left
    // out where no query of the warp has a weight of 2^-FADED for any of them: they cost no exp. Keys are compared with the
    // reference before it moves, which leaves out fewer.
    template <bool FIRST>
    __device__ __forceinline__ void to_few_weights(float (&s)[32], float scale, uint32_t room) {
        float inverse = __fdividef(1, scale), least[2] = {(shift[0] - FADED) * inverse, (shift[1] - FADED) * inverse}, best[2];
        uint32_t count = 0; // a bit for each sixteen keys
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float top[2] = {fmaxf(fmaxf(s[8 * i], s[8 * i + 1]), fmaxf(s[8 * i + 4], s[8 * i + 5])), fmaxf(fmaxf(s[8 * i + 2], s[8 * i + 3]), fmaxf(s[8 * i + 6], s[8 * i + 7]))};
            best[0] = i == 0 ? top[0] : fmaxf(best[0], top[0]), best[1] = i == 0 ? top[1] : fmaxf(best[1], top[1]);
            // In assembly, so that the four steps follow each other: side by side they need too many registers.
            if (!FIRST)
                asm volatile("{ .reg .pred p; setp.gt.f32 p, %1, %2; setp.gt.or.f32 p, %3, %4, p; @p or.b32 %0, %0, %5; }"
                             : "+r"(count) : "f"(top[0]), "f"(least[0]), "f"(top[1]), "f"(least[1]), "r"(1 << i));
        }
        count = FIRST ? 0xf : __reduce_or_sync(0xffffffffu, count);
        if (FIRST || __any_sync(0xffffffffu, best[0] * scale - shift[0] > GROWTH || best[1] * scale - shift[1] > GROWTH)) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float top = quad_max(best[r]) * scale;
                if (FIRST) {
                    shift[r] = top;
                } else {
                    float raise = fmaxf(top - shift[r], 0);
                    shift[r] += raise;
                    scale_later(r, exp2_fast(-raise), room);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 32; i += 8) {
#pragma unroll
            for (int j = 0; j < 8; j++) asm volatile("" : "+f"(s[i + j]), "+r"(count));
            if (count >> i / 8 & 1) {
#pragma unroll
                for (int j = 0; j < 8; j++) s[i + j] = exp2_fast(s[i + j] * scale - shift[j / 2 % 2]);
                if (!ONES) sum[0] += s[i] + s[i + 1] + s[i + 4] + s[i + 5], sum[1] += s[i + 2] + s[i + 3] + s[i + 6] + s[i + 7];
            } else {
#pragma unroll
                for (int j = 0; j < 8; j++) s[i + j] = 0;
            }
        }
        hold(s);
    }

    // Exponents become weights, in place, and are summed unless the product with V does it. POLYNOMIAL: four of the 32 are
    // left to the FMA pipe.
    template <bool POLYNOMIAL>
    __device__ __forceinline__ void to_weights(float (&s)[32]) {
        float part[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 16; i++) {
            s[2 * i] = exp2_fast(s[2 * i]);
            s[2 * i + 1] = POLYNOMIAL && i % 4 == 0 ? exp2_polynomial(s[2 * i + 1]) : exp2_fast(s[2 * i + 1]);
            if (!ONES) part[i % 4] += s[2 * i] + s[2 * i + 1];
        }
        if (!ONES) sum[0] += part[0] + part[2], sum[1] += part[1] + part[3];
        hold(s);
    }
};

// Gives a tile back to the producer. Lanes that have read it themselves each say so.
__device__ __forceinline__ void give_back(uint32_t room, uint32_t stage, bool read) {
    if (read) barrier_arrive(room + Shared::EMPTY + 8 * stage);
    else if (threadIdx.x % 32 == 0) barrier_arrive_for_warp(room + Shared::EMPTY + 8 * stage);
}
