// Stage 7, Hopper: long problems, and D = 128. As in stage6_wgmma, a producer warpgroup copies and decodes, and the blocks are
// persistent; their consumer warpgroups have 64 queries each. What is new:
//
// Weights without maxima. A row's reference is fixed by its first tile and moves only when a weight would reach 1, which
// the signs of the exponents show: 16 logical operations per tile and lane instead of 32 maxima and 4 shuffles. A move makes
// the largest weight 1/16. For D = 64, and where all products are FP8, weights are computed before the signs are known; a
// warp whose weights do not fit computes the tile's scores again with mma.sync.
//
// Products that overlap with weights. The product of a tile's weights with V runs while the next tile's weights are computed
// in place of their scores; they become FP16 operands when the product is done.
//
// Scores as exact as they must be. By its scales, a head takes one of three ways (choose_mode). If no product can be too
// large for FP8, FP8 throughout. If few can, FP8 too, but the producer marks halves of tiles that have large keys, and all
// warps compute the scores of those halves again with FP16 products (mma.sync). If most can (inputs of sigma 8), the producer decodes K
// also, and Q·Kᵀ is FP16 wgmma. Scores are then far apart and few weights count: a warp leaves out every eight keys that
// have a weight below 2^-21 in all of its rows, without exp, and the reference moves only when a weight exceeds 2^12.
//
// Error. FP8 wgmma is wrong by up to 2^-11.5 of the largest product in a score (hopper.cuh), and by 2^-10.7 for D = 128, which
// adds up four times instead of two. Products up to 24, as exponents of 2, are trusted: a key is large if its product with
// the largest code is beyond that. The limit is rounded to a code, by 1/16 at most, so that a score is wrong by at most
// 25.5·2^-10.7 = 0.0154 and a weight by 1.07 %. Larger products are FP16 and exact, their sums FP32. Rounding to FP16
// changes a weight by 2^-12 of it, or by 2^-25 if it is below 2^-14; since a row's
// largest weight is at least 1/16, small weights lose at most S·2^-21 of the row's sum. With FP16 scores the largest weight
// is at least 1 and weights below 2^-21 are left out, which is S·2^-21 of the sum again. Weights by a polynomial are wrong by
// 2^-13.7 of themselves. So every weight is right within e = 1.1 % of itself and O within 2·e·max|V| + S·2^-21·max|V|, if all
// errors had the worst sign. They have random signs: the norm of the error is 0.04 % of O's on all kinds of input.
//
// Causal rows are dealt out longest first, back and forth over the blocks, so that the sums of their lengths agree.
//
// Tile: 64 keys. D = 64: four consumer warpgroups, as 4 groups of queries, or as 2 that share the keys in pairs where that
// fills the GPU better (choose_row_groups). SHARED_KEYS=0 leaves sharing out and has more tiles on their way. D = 128: two
// warpgroups, or three for many queries (CONSUMER_GROUPS), which do not share keys.
// Shared memory (struct Shared): decoded tiles of K and V, codes on their way, Q, ones (D = 64), partial results, barriers.
// Registers: 112 per consumer and 32 per producer with four warpgroups, 160 and 32 with three, 216 and 72 with two.
//
// Bound by: no unit alone. On big (ncu) the special-function units are 64 % busy, tensor cores 50 %, issue slots 51 %. exp
// alone takes 8 cycles per warp instruction, and 10.6 while the tensor cores run (a loop of exp next to one of wgmma), which
// would be 84 % of big's time. For inputs of sigma 8: issue slots 56 %, tensor cores 47 %, ALU 47 % (maxima and comparisons),
// special-function units 18 %; 60 % of a warp's tiles move a reference. D = 128, two warpgroups: tensor cores 43 %,
// special-function units 30 %, and a block of exp takes 565 cycles where 256 would do, because both warpgroups are in it.
// Measured (H200, graph replay, cold L2, µs; normal/dominant/large inputs; B,H,S,D, c: causal): 2,16,1024,64 20/22/25,
// c 18/19/21; 1,8,2048,64 21/23/26; without sharing 4,16,2048,64 120/129/155; 1,8,8192,64 215/225/265; 16,16,577,64
// 71/79/92; 1,12,4096,64,c 58/67/73. D = 128: 1,16,2048 59/64/78; 1,8,4096 109/117/139; 1,2,8192 105/114/129. Three
// warpgroups: 1,32,4096,c 201/215/251; 4,32,1024,c 79/83/95; 2,32,2048,c 120/128/150.
// What it owes to what: eight keys left out at a time, big on large inputs 174 to 168 with a vote for each of the eight, and to
// 157 with one vote for all; four exp of 32 as polynomials, D = 128 with two warpgroups -2.5 %; Q asked for with the scales,
// D = 64 -1 %; no sharing and four tiles on their way instead of two, big -1 %, 1,12,4096,64,c -4 %.
// Tried without gain: warpgroups that take turns with exp, or with products (big +6 %, +1 %; D = 128 dominant +10 to +20 %);
// more exp as polynomials on the FMA pipe (D = 64: 4, 8, 16 of 32: big +3, +8, +20 %; D = 128: 8, 16 of 32: -1, +4 %; three
// warpgroups, 4 of 32: +1 %); sums of weights by wgmma for D = 128 (+-1 %); three warpgroups for D = 64 (big 161); two with
// two tiles of scores each (big 174); FP16 chosen tile by tile by the producer, whose vote delays it (very_long 314 on
// dominant inputs); large keys computed again only by warps with large queries (wrong by 0.07 where V is large too, once in
// 2 million outputs); weights before signs for D = 128 (long problems -1 %, short ones +6 %); three or four tiles on their way
// for D = 128 (+-1 %); 14 bits instead of 21 for weights that count (large -0.5 %).
//
// Launch: any grid (best: as many blocks as SMs, or fewer if there is less work), block THREADS, dynamic shared memory
// Shared::BYTES.

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

    // This warp's scores again, of the halves of tile `number` whose keys are so large that their products are not to be
    // trusted. Returns whether there may have been any. Lane 0 looks, because it gives the tile back.
    __device__ __forceinline__ bool correct_scores(float (&s)[32], uint32_t room, uint32_t number) const {
        if (MODE != CODES_MOSTLY) return false;
        uint32_t low = 0, high = 0;
        if (threadIdx.x % 32 == 0)
            asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "r"(room + Shared::LARGE + 8 * (number % STAGES)) : "memory");
        uint32_t halves = __shfl_sync(0xffffffffu, (low == number + 1) + 2 * (high == number + 1), 0);
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

    // FP16 scores, which are far apart, become weights in place. Few of them count, so eight keys at a time are left out
    // where no query of the warp has a weight of 2^-FADED for any of them: they cost no exp. Keys are compared with the
    // reference before it moves, which leaves out fewer.
    template <bool FIRST>
    __device__ __forceinline__ void to_few_weights(float (&s)[32], float scale, uint32_t room) {
        float inverse = __fdividef(1, scale), least[2] = {(shift[0] - FADED) * inverse, (shift[1] - FADED) * inverse}, best[2];
        uint32_t count = 0; // a bit for each eight keys
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float top[2] = {fmaxf(s[4 * i], s[4 * i + 1]), fmaxf(s[4 * i + 2], s[4 * i + 3])};
            best[0] = i == 0 ? top[0] : fmaxf(best[0], top[0]), best[1] = i == 0 ? top[1] : fmaxf(best[1], top[1]);
            // In assembly, so that the eight steps follow each other: side by side they need too many registers.
            if (!FIRST)
                asm volatile("{ .reg .pred p; setp.gt.f32 p, %1, %2; setp.gt.or.f32 p, %3, %4, p; @p or.b32 %0, %0, %5; }"
                             : "+r"(count) : "f"(top[0]), "f"(least[0]), "f"(top[1]), "f"(least[1]), "r"(1 << i));
        }
        count = FIRST ? 0xff : __reduce_or_sync(0xffffffffu, count);
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
        for (int i = 0; i < 32; i += 4) {
            asm volatile("" : "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+r"(count));
            if (count >> i / 4 & 1) {
#pragma unroll
                for (int j = 0; j < 4; j++) s[i + j] = exp2_fast(s[i + j] * scale - shift[j / 2]);
                if (!ONES) sum[0] += s[i] + s[i + 1], sum[1] += s[i + 2] + s[i + 3];
            } else {
                s[i] = s[i + 1] = s[i + 2] = s[i + 3] = 0;
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

template <Mode MODE>
__device__ __forceinline__ void attend(const Problem& p, uint32_t room, int item, uint32_t before, int group, float scale) {
    constexpr bool POLYNOMIAL = CONSUMERS == 2 && MODE == CODES_ONLY;
    int row_group = group % p.row_groups, key_group = group / p.row_groups, key_groups = CONSUMERS / p.row_groups;
    int block = p.block(item), first = (block * p.row_groups + row_group) * 64;
    Queries<MODE> q;
    q.load(room, p.q + (size_t)p.head(item) * p.S * DIM, first, p.S, group);
    Output x;
    x.clear();

    // Tile t has number before + t in the ring. With causal, the last tiles may be for other rows only.
    int tiles = p.tiles(block);
    int needed = first >= p.S ? 0 : p.causal ? min(tiles, first / KEYS + 1) : tiles;
    int t = key_group;
    uint32_t number = before + t;
    if (t < needed) {
        float s[32];
        uint32_t weights[16];
        uint32_t last = number % STAGES;
        barrier_wait(room + Shared::FULL + last * 8, number / STAGES % 2);
        q.begin_scores(s, room + Shared::K + last * HALVES);
        wgmma_wait<0>();
        hold(s);
        bool read = q.correct_scores(s, room, number); // the last tile, by this warp's lanes
        mask_tile(s, t * KEYS, first, p.S, p.causal);
        if (MODE == HALVES_ONLY) {
            x.to_few_weights<true>(s, scale, room);
        } else {
            x.to_exponents<true>(s, scale, room);
            x.to_weights<POLYNOMIAL>(s);
        }
        pack<32>(weights, s);
        t += key_groups;
        // The scores of the next tile and the product of this one's weights with V.
        if (t < needed) {
            while (true) {
                number += key_groups;
                uint32_t stage = number % STAGES;
                barrier_wait(room + Shared::FULL + stage * 8, number / STAGES % 2);
                q.begin_scores(s, room + Shared::K + stage * HALVES);
                begin_values(x.o, weights, room + Shared::V + last * HALVES, room + Shared::ONES_AT);
                wgmma_wait<1>();
                hold(s);
                x.moved = false;
                bool reads = q.correct_scores(s, room, number);
                mask_tile(s, t * KEYS, first, p.S, p.causal);
                bool fits = TRY && MODE == CODES_ONLY && x.try_weights(s, scale);
                if (MODE == HALVES_ONLY) {
                    x.to_few_weights<false>(s, scale, room);
                } else if (!fits) {
                    if (TRY && MODE == CODES_ONLY) {
                        q.compute_again(s, room, number);
                        reads = true;
                        mask_tile(s, t * KEYS, first, p.S, p.causal);
                    }
                    x.to_exponents<false>(s, scale, room);
                    x.to_weights<POLYNOMIAL>(s);
                }
                t += key_groups;
                // The wait for the product with V stands in blocks of its own, and not in both as the same text: the compiler would
                // move it up to the weights' first instruction.
                if (t >= needed) {
                    asm volatile("wgmma.wait_group.sync.aligned 0; // the last" ::: "memory");
                    x.rescale_output(room);
                    give_back(room, last, read);
                    pack<32>(weights, s);
                    last = stage, read = reads;
                    break;
                }
                wgmma_wait<0>();
                x.rescale_output(room);
                give_back(room, last, read);
                pack<32>(weights, s);
                last = stage, read = reads;
            }
        }
        begin_values(x.o, weights, room + Shared::V + last * HALVES, room + Shared::ONES_AT);
        wgmma_wait<0>();
        hold(x.o);
        give_back(room, last, read);
        number += key_groups;
    } else {
        x.shift[0] = x.shift[1] = LOWEST; // for the merge
    }
    for (; t < tiles; t += key_groups, number += key_groups) {
        barrier_wait(room + Shared::FULL + number % STAGES * 8, number / STAGES % 2);
        give_back(room, number % STAGES, false);
    }
    float v_scale = __ldg(p.v_scale + p.head(item) % p.H);
#pragma unroll
    for (int r = 0; r < 2; r++) x.sum[r] = ONES ? x.o[DIM / 2 + 2 * r] : quad_sum(x.sum[r]);

    // The key groups' results meet in group 0.
    if (PARTIALS > 0 && key_groups > 1) {
        int members = key_groups * 128;
        if (key_group > 0) {
            uint32_t mine = room + Shared::MERGE + ((key_group - 1) * p.row_groups + row_group) * PARTIAL + threadIdx.x % 128 * 4;
#pragma unroll
            for (int i = 0; i < DIM / 2 + 4; i++) {
                float y = i < DIM / 2 ? x.o[i] : i < DIM / 2 + 2 ? x.shift[i - DIM / 2] : x.sum[i - DIM / 2 - 2];
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(mine + i * 512), "f"(y) : "memory");
            }
        }
        asm volatile("bar.sync %0, %1;" ::"r"(row_group + 1), "r"(members) : "memory");
        for (int from = 1; key_group == 0 && from < key_groups; from++) {
            uint32_t theirs = room + Shared::MERGE + ((from - 1) * p.row_groups + row_group) * PARTIAL + threadIdx.x % 128 * 4;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float their_shift, their_sum;
                asm volatile("ld.shared.f32 %0, [%1];" : "=f"(their_shift) : "r"(theirs + (DIM / 2 + r) * 512) : "memory");
                asm volatile("ld.shared.f32 %0, [%1];" : "=f"(their_sum) : "r"(theirs + (DIM / 2 + 2 + r) * 512) : "memory");
                float best = fmaxf(x.shift[r], their_shift), a = exp2_fast(x.shift[r] - best), b = exp2_fast(their_shift - best);
                x.shift[r] = best;
                x.sum[r] = x.sum[r] * a + their_sum * b;
#pragma unroll
                for (int i = 0; i < DIM / 4; i++) {
                    int at = i / 2 * 4 + 2 * r + i % 2;
                    float y;
                    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(y) : "r"(theirs + at * 512) : "memory");
                    x.o[at] = x.o[at] * a + y * b;
                }
            }
        }
        asm volatile("bar.sync %0, %1;" ::"r"(row_group + 1), "r"(members) : "memory");
    }
    if (key_group > 0) return;
    int thread = thread_index();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float norm = __fdividef(v_scale, x.sum[r]);
        int row = first + thread / 32 % 4 * 16 + thread % 32 / 4 + 8 * r;
        if (row >= p.S) continue;
        __half* to = p.o + ((size_t)p.head(item) * p.S + row) * DIM + thread % 4 * 4;
#pragma unroll
        for (int i = 0; i < DIM / 16; i++)
            *reinterpret_cast<uint2*>(to + 16 * i) = make_uint2(pack_half2(x.o[8 * i + 2 * r] * norm, x.o[8 * i + 2 * r + 1] * norm),
                                                                pack_half2(x.o[8 * i + 4 + 2 * r] * norm, x.o[8 * i + 5 + 2 * r] * norm));
    }
}

__device__ __forceinline__ void consume(const Problem& p, uint32_t room) {
    int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    uint32_t before = 0; // tiles of the items so far
    for (int item = blockIdx.x; item < p.work(); item = p.next(item)) {
        if (DIM == 64) {
            // Q comes from memory while the scales do.
            int row = (p.block(item) * p.row_groups + group % p.row_groups) * 64 + threadIdx.x % 128 / 2;
            asm volatile("prefetch.global.L2 [%0];" ::"l"(p.q + ((size_t)p.head(item) * p.S + min(row, p.S - 1)) * DIM + threadIdx.x % 2 * (DIM / 2)));
        }
        float scale = p.scale(p.head(item));
        switch (choose_mode(scale)) {
        case CODES_ONLY: attend<CODES_ONLY>(p, room, item, before, group, scale); break;
        case CODES_MOSTLY: attend<CODES_MOSTLY>(p, room, item, before, group, scale); break;
        default: attend<HALVES_ONLY>(p, room, item, before, group, scale);
        }
        before += p.tiles(p.block(item));
    }
}

// How many of the warpgroups take queries of their own; the others share their keys. The one that needs fewer turns of
// the busiest SM, counted in tiles of keys; an item costs three more.
__device__ __forceinline__ int choose_row_groups(int heads, int S, bool causal) {
    int tiles = (S + KEYS - 1) / KEYS, best = CONSUMERS, least = 0x7fffffff;
#pragma unroll
    for (int groups = CONSUMERS; groups >= (PARTIALS > 0 ? CONSUMERS / 2 : CONSUMERS); groups /= 2) {
        int blocks = (tiles + groups - 1) / groups, longest = (tiles * groups + CONSUMERS - 1) / CONSUMERS;
        int turns = (heads * blocks + SMS - 1) / SMS;
        int cost = turns * (longest + 3);
        if (causal) cost = max(longest, turns * (longest + 1) / 2) + 3 * turns;
        if (cost < least) least = cost, best = groups;
    }
    return best;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
sdpa_fp8(const uint8_t* q, const uint8_t* k, const uint8_t* v, const float* q_scale, const float* k_scale,
         const float* v_scale, __half* o, int B, int H, int S, int D, int causal) {
    extern __shared__ __align__(1024) uint8_t dynamic[];
    uint32_t room = shared_address(dynamic);
    int row_groups = choose_row_groups(B * H, S, causal != 0);
    Problem p = {q, k, v, q_scale, k_scale, v_scale, o, B, H, S, causal != 0, row_groups};
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) {
            barrier_init(room + Shared::FULL + 8 * i, 128);
            barrier_init(room + Shared::EMPTY + 8 * i, 128 * row_groups);
            asm volatile("st.shared.v2.b32 [%0], {0, 0};" ::"r"(room + Shared::LARGE + 8 * i) : "memory");
        }
    if (ONES)
        for (int i = threadIdx.x; i < ONES_BYTES / 4; i += THREADS) asm volatile("st.shared.b32 [%0], %1;" ::"r"(room + Shared::ONES_AT + 4 * i), "r"(0x3c003c00) : "memory");
    fence_to_tensor_cores();
    __syncthreads();

    if (threadIdx.x >= 128 * CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(PRODUCER_REGISTERS));
        produce(p, room);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONSUMER_REGISTERS));
        consume(p, room);
    }
}
