// What stage 7's two roles share: sizes, the map of shared memory, the order of the work, how exact the scores of a head
// must be; and the producers, who copy codes, decode V (and K where scores are FP16) and mark tiles with large keys.
#pragma once

#include "barrier.cuh"
#include "hopper.cuh"

#ifndef HEAD_SIZE
#define HEAD_SIZE 64
#endif
#ifndef CONSUMER_GROUPS
#define CONSUMER_GROUPS 4
#endif
#ifndef SHARED_KEYS
#define SHARED_KEYS 1
#endif
constexpr int DIM = HEAD_SIZE, KEYS = 64, CONSUMERS = CONSUMER_GROUPS, THREADS = 128 * (CONSUMERS + 1);
constexpr int SMS = 132;                                // of an H100 or H200
constexpr int STAGES = DIM == 64 ? 8 : 4;               // tiles decoded
constexpr int RAW = SHARED_KEYS || DIM == 128 ? 2 : 4;  // and on their way
constexpr int CODES = KEYS * DIM, HALVES = 2 * CODES;   // bytes of a tile of K or V
constexpr bool ONES = DIM == 64;                        // V has 8 columns of ones behind it, which sum the weights
constexpr int ONES_BYTES = ONES ? 8192 : 0;
constexpr int WIDTH = DIM / 2 + (ONES ? 4 : 0);         // registers of O
constexpr int PARTIAL = 128 * (DIM / 2 + 4) * 4;        // bytes of one warpgroup's partial result
constexpr int PARTIALS = SHARED_KEYS && CONSUMERS % 2 == 0 ? CONSUMERS / 2 : 0; // an odd number of warpgroups does not share keys
constexpr bool PAIRS = DIM == 128 && CONSUMERS == 3;    // blocks can share an item's keys in pairs
constexpr bool TRY = DIM == 64;                         // weights are computed before it is known that the reference need not move
constexpr float HEADROOM_BITS = 5;                      // the largest weight after the reference has moved is 2^(1 - HEADROOM_BITS)

// FP16 scores: the largest weight is 1 after the reference has moved, which it does before a weight exceeds 2^GROWTH. Weights
// below 2^-FADED are 0.
constexpr float GROWTH = 12, FADED = 21;

// All of an SM's 65536 registers, as far as the launch's equal share for all threads allows.
constexpr int CONSUMER_REGISTERS = CONSUMERS == 4 ? 112 : CONSUMERS == 3 ? 152 : 216, PRODUCER_REGISTERS = CONSUMERS == 4 ? 32 : CONSUMERS == 3 ? 56 : 72;

// The largest product of two elements, as an exponent, that FP8 products are trusted with (hopper.cuh). limit_addend rounds
// it to a code, up to 25.5: a score is wrong by at most 25.5·2^-10.7 = 0.0154, a weight by 1.07 %.
constexpr float MOST_TRUSTED = 24;

// How the scores of a head are computed: from the codes; from the codes except for keys whose products may be
// too large; or from FP16 throughout, where such keys are the rule.
enum Mode { CODES_ONLY, CODES_MOSTLY, HALVES_ONLY };

__device__ __forceinline__ Mode choose_mode(float scale) {
    float most = scale * (448.f * 448.f);
    return most <= MOST_TRUSTED ? CODES_ONLY : most <= (DIM == 64 ? 128 : 90) ? CODES_MOSTLY : HALVES_ONLY;
}

struct Shared {
    static constexpr int K = 0, V = K + STAGES * HALVES, RAW_AT = V + STAGES * HALVES, Q = RAW_AT + RAW * 2 * CODES,
                         ONES_AT = Q + CONSUMERS * 128 * DIM, MERGE = ONES_AT + ONES_BYTES, FULL = MERGE + PARTIALS * PARTIAL,
                         EMPTY = FULL + 8 * STAGES, LARGE = EMPTY + 8 * STAGES, RESCALE = LARGE + 8 * STAGES, BYTES = RESCALE + (DIM == 64 ? 8 * 128 * CONSUMERS : 0);
};

// What a block does of an item: tiles from .. to of its keys. half: another block does the others.
struct Share {
    int item, from, to;
    bool half;
};

// Both blocks of a pair are here, and see what the other one wrote before.
__device__ __forceinline__ void meet_in_pair() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

struct Problem {
    const uint8_t *q, *k, *v;
    const float *q_scale, *k_scale, *v_scale;
    __half* o;
    int B, H, S;
    bool causal;
    int row_groups; // of 64 queries in an item
    bool paired;    // blocks take items in pairs

    __device__ __forceinline__ int heads() const { return B * H; }
    __device__ __forceinline__ int blocks() const { return (S + 64 * row_groups - 1) / (64 * row_groups); }
    __device__ __forceinline__ int work() const { return heads() * blocks(); }

    // What a block does as number i. Items are dealt out longest first, and back and forth over the blocks, so that the sums of
    // their lengths agree. In pairs of blocks, an odd item at the end is shared.
    __device__ __forceinline__ bool take(int i, Share& share) const {
        int blocks = gridDim.x, me = blockIdx.x;
        share.item = i * blocks + (i % 2 ? blocks - 1 - me : me);
        share.half = false;
        if (PAIRS && paired) {
            int items = pair_items();
            if (2 * i >= items) return false;
            share.half = 2 * i + 1 == items;
            share.item = me / 2 + blocks / 2 * (2 * i + (share.half ? 0 : me % 2));
        }
        if (share.item >= work()) return false;
        int all = tiles(block(share.item)), middle = (all + 1) / 2;
        share.from = share.half && me % 2 == 1 ? middle : 0, share.to = share.half && me % 2 == 0 ? middle : all;
        return true;
    }

    // How many items a pair of blocks has, and whether sharing the last of them saves time that the exchange does not cost again.
    __device__ __forceinline__ int pair_items() const { return (work() + (int)gridDim.x / 2 - 1 - (int)blockIdx.x / 2) / ((int)gridDim.x / 2); }
    __device__ __forceinline__ bool pairs_help() const {
        int pairs = gridDim.x / 2;
        return gridDim.x % 2 == 0 && (work() + pairs - 1) / pairs % 2 == 1 && tiles(0) >= 8;
    }

    __device__ __forceinline__ int head(int item) const { return causal ? item % heads() : item / blocks(); }
    __device__ __forceinline__ int block(int item) const { return causal ? blocks() - 1 - item / heads() : item % blocks(); }
    __device__ __forceinline__ int tiles(int block) const { return ((causal ? min(S, (block + 1) * 64 * row_groups) : S) + KEYS - 1) / KEYS; }
    __device__ __forceinline__ float scale(int head) const { return softmax_scale_log2(__ldg(q_scale + head % H), __ldg(k_scale + head % H), DIM); }
};

// d = A·Bᵀ (+ d where add), FP16, 16 columns of the sum.
__device__ __forceinline__ void wgmma_scores_f16(float (&d)[32], uint64_t a, uint64_t b, int add) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                   "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                   "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void store_shared(uint32_t at, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// 16 codes into an FP16 tile: rows of 64 columns, swizzled; for DIM = 128 two such parts. Of every 16 columns, 4t and
// 4t+1 go first and 4t+2 and 4t+3 after them, so that a lane's columns of O are 4 neighbours.
__device__ __forceinline__ uint32_t halves_at(int row, int chunk) { return chunk / 4 * (KEYS * 128) + row * 128 + 16 * (chunk % 4 * 2 ^ row % 8); }

__device__ __forceinline__ void decode_into(uint32_t at, uint4 x) {
    store_shared(at, decode_low(x.x), decode_low(x.y), decode_low(x.z), decode_low(x.w));
    store_shared(at ^ 16, decode_high(x.x), decode_high(x.y), decode_high(x.z), decode_high(x.w));
}

__device__ __forceinline__ uint4 load_words(uint32_t at) {
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(at) : "memory");
    return x;
}

// The thread's index, read again: what is computed from it does not stay in a register meanwhile.
__device__ __forceinline__ int thread_index() {
    int i;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(i));
    return i;
}

// Where this thread's first piece of a tile lies; others follow ROWS rows on. Eight lanes at a time store to all banks: for
// DIM = 128 they take halves of two rows.
struct Piece {
    static constexpr int PIECES = CODES / 16 / 128, ROWS = KEYS / PIECES;
    int row, chunk;
    __device__ __forceinline__ Piece() {
        int thread = threadIdx.x % 128;
        if (DIM == 64) row = thread / 4, chunk = thread % 4;
        else row = thread / 16 * 2 + thread / 4 % 2, chunk = thread % 4 + thread / 8 % 2 * 4;
    }
};

// Whether one of 16 codes is larger than the limit, of which magnitudes are added: bit 7 of a byte says so.
__device__ __forceinline__ uint32_t beyond(uint4 x, uint32_t addend) {
    return ((x.x & 0x7f7f7f7f) + addend | (x.y & 0x7f7f7f7f) + addend | (x.z & 0x7f7f7f7f) + addend | (x.w & 0x7f7f7f7f) + addend) & 0x80808080;
}

// What is added to magnitudes so that those overflow whose product with the largest code is beyond trust.
__device__ __forceinline__ uint32_t limit_addend(float scale) {
    unsigned short code;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(code) : "f"(MOST_TRUSTED / (scale * 448.f)));
    return (0x7f - (code & 0x7f)) * 0x01010101u;
}

__device__ __forceinline__ void produce(const Problem& p, uint32_t room) {
    // A thread's share of a tile, and how much of it is in registers at a time.
    constexpr int PIECES = Piece::PIECES, PART = CONSUMERS == 3 ? PIECES / 2 : PIECES;
    constexpr uint32_t DECODE = 0xffffffff;
    // The swizzle is the same in all of its rows, which are multiples of 8 apart.
    uint32_t codes_to = code_at<DIM>(Piece().row, Piece().chunk), halves_to = halves_at(Piece().row, Piece().chunk);
    uint32_t raw = room + Shared::RAW_AT + threadIdx.x % 128 * 16;
    uint32_t number = 0; // of the next tile to hand over
    // The tile to copy next runs ahead of the one that is handed over, over the bounds of items.
    int coming = 0, left_to_copy = 0;
    uint32_t at = 0; // of this thread's first piece of the tile, counted in pieces of 16 bytes
    int row = 0;     // and its row
    auto copy_next = [&](uint32_t slot) {
        Share share;
        if (left_to_copy == 0 && p.take(coming, share)) {
            row = share.from * KEYS + Piece().row;
            at = ((uint32_t)p.head(share.item) * p.S + row) * (DIM / 16) + Piece().chunk;
            left_to_copy = share.to - share.from;
            coming++;
        }
        if (left_to_copy > 0) {
            uint32_t to = raw + slot % RAW * (2 * CODES);
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                bool valid = row + Piece::ROWS * i < p.S;
                size_t from = valid ? (size_t)(at + 128 * i) * 16 : 0;
                copy16_async(to + 2048 * i, p.k + from, valid);
                copy16_async(to + CODES + 2048 * i, p.v + from, valid);
            }
            at += CODES / 16, row += KEYS, left_to_copy--;
        }
        commit_copies();
    };
#pragma unroll
    for (int i = 0; i < RAW - 1; i++) copy_next(i);
    Share share;
    for (int i = 0; p.take(i, share); i++) {
        float scale = p.scale(p.head(share.item));
        int end = number + share.to - share.from;
        // What the mode makes of K's codes: those beyond the limit are looked for, or all are decoded.
        Mode mode = choose_mode(scale);
        uint32_t addend = mode == CODES_MOSTLY ? limit_addend(scale) : mode == HALVES_ONLY ? DECODE : 0;
        for (; (int)number < end; number++) {
            copy_next(number + RAW - 1);
            wait_copies<RAW - 1>(); // this thread decodes what it copied itself
            uint32_t stage = number % STAGES, from = raw + number % RAW * (2 * CODES);
#pragma unroll 1
            for (int part = 0; part < PIECES; part += PART) {
                uint4 x[PART];
                uint32_t large[2] = {0, 0}; // in the tile's halves, or in this half
#pragma unroll
                for (int i = 0; i < PART; i++) x[i] = load_words(from + 2048 * (part + i));
                if (addend != 0 && addend != DECODE) {
#pragma unroll
                    for (int i = 0; i < PART; i++) large[i / (PIECES / 2)] |= beyond(x[i], addend);
                }
                if (part == 0) barrier_wait(room + Shared::EMPTY + 8 * stage, number / STAGES % 2 ^ 1);
#pragma unroll
                for (int i = 0; i < 2 * PART / PIECES; i++)
                    if (large[i]) asm volatile("red.shared.max.u32 [%0], %1;" ::"r"(room + Shared::LARGE + 8 * stage + 4 * (part / (PIECES / 2) + i)), "r"(number + 1) : "memory");
                uint32_t tile = room + Shared::K + stage * HALVES;
#pragma unroll
                for (int i = 0; i < PART; i++) {
                    int rows = Piece::ROWS * (part + i);
                    if (addend == DECODE) decode_into(tile + halves_to + rows * 128, x[i]);
                    else store_shared(tile + codes_to + rows * DIM, x[i].x, x[i].y, x[i].z, x[i].w);
                }
            }
#pragma unroll 1
            for (int part = 0; part < PIECES; part += PART) {
                uint4 x[PART];
#pragma unroll
                for (int i = 0; i < PART; i++) x[i] = load_words(from + CODES + 2048 * (part + i));
#pragma unroll
                for (int i = 0; i < PART; i++) decode_into(room + Shared::V + stage * HALVES + halves_to + Piece::ROWS * (part + i) * 128, x[i]);
            }
            fence_to_tensor_cores();
            barrier_arrive(room + Shared::FULL + 8 * stage);
        }
    }
    wait_copies<0>();
}
