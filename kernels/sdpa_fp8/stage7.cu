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
// warps compute the scores of those halves again with FP16 products (mma.sync). If most can (inputs of sigma 8), the producer
// decodes K also, and Q·Kᵀ is FP16 wgmma. Scores are then far apart and few weights count: a warp leaves out every sixteen keys
// that have a weight below 2^-21 in all of its rows, without exp, and the reference moves only when a weight exceeds 2^12.
//
// Error. FP8 wgmma is wrong by up to 2^-11.5 of the largest product in a score (hopper.cuh), and by 2^-10.7 for D = 128, which
// adds up four times instead of two. Products up to 24, as exponents of 2, are trusted: a key is large if its product with
// the largest code is beyond that. The limit is rounded to a code, by 1/16 at most, so that a score is wrong by at most
// 25.5·2^-10.7 = 0.0154 and a weight by 1.07 %. Larger products are FP16 and exact, their sums FP32. Rounding to FP16
// changes a weight by 2^-12 of it, or by 2^-25 if it is below 2^-14; since a row's largest weight is at least 1/16, small
// weights lose at most S·2^-21 of the row's sum. With FP16 scores the largest weight is at least 1 and weights below 2^-21
// are left out, which is S·2^-21 of the sum again. Weights by a polynomial are wrong by 2^-13.7 of themselves, and half of
// a shared item's result by 2^-12, as it is sent in FP16. So every weight is right within e = 1.1 % of itself and O within
// 2·e·max|V| + S·2^-21·max|V|, if all errors had the worst sign. They have random signs: the norm of the error is 0.04 % of
// O's on all kinds of input.
//
// Work for all SMs. Causal rows are dealt out longest first, back and forth over the blocks, so that the sums of their lengths
// agree. With three warpgroups, items of 192 queries are dealt out to pairs of blocks (clusters); if a pair's last item is an
// odd one, each block takes half of its keys, and the results meet through the cluster's shared memory.
//
// Tile: 64 keys. D = 64: four consumer warpgroups, as 4 groups of queries, or as 2 that share the keys in pairs where that
// fills the GPU better (choose_row_groups). SHARED_KEYS=0 leaves sharing out and has more tiles on their way. D = 128: two
// warpgroups, which can share keys too, or three for many queries (CONSUMER_GROUPS), which cannot.
// Shared memory (struct Shared): decoded tiles of K and V, codes on their way, Q, ones (D = 64), partial results, barriers.
// Registers: 112 per consumer and 32 per producer with four warpgroups, 152 and 56 with three, 216 and 72 with two.
//
// Bound by: no unit alone. On big (ncu) the special-function units are 64 % busy, tensor cores 50 %, issue slots 51 %. exp
// alone takes 8 cycles per warp instruction, and 10.6 while the tensor cores run (a loop of exp next to one of wgmma), which
// would be 84 % of big's time. For inputs of sigma 8: issue slots 56 %, tensor cores 47 %, ALU 47 % (maxima and comparisons),
// special-function units 18 %; 60 % of a warp's tiles move a reference. D = 128, two warpgroups: tensor cores 43 %,
// special-function units 30 %, issue slots 39 %. A warp has one other consumer and one producer next to it on its scheduler,
// and 43 % of its time it waits for its own last instruction or for the dispatch of the next one.
// Measured: docs/sdpa_fp8.md.
// What it owes to what: keys left out eight at a time, big on large inputs 174 to 168 with a vote for each of the eight, and to
// 157 with one vote for all; sixteen at a time -1 %; four exp of 32 as polynomials, D = 128 with two warpgroups -2.5 %; Q asked
// for with the scales, D = 64 -1 %; no sharing and four tiles on their way instead of two, big -1 %, 1,12,4096,64,c -4 %; the
// producer's marks read before the products begin, and handed on by votes instead of a shuffle, dominant inputs -17 % for
// D = 128 and -8 % for D = 64 (tensor cores that read operands keep a load or shuffle waiting for 280 cycles); pairs of blocks,
// three warpgroups on 1,16,2048,128 -17 %, on 1,8,4096,128 -20 %, of which the exchange takes 2 to 3 µs.
// Tried without gain: warpgroups that take turns with exp, or with products (big +6 %, +1 %; D = 128 +14 %, dominant +10 to
// +20 %); the scores of the next tile begun before this one's weights, D = 128 (+10 %); Q in registers (+7 %, dominant -6 %);
// tiles of 128 keys (+2 %, causal +4 to +8 %); separate barriers for keys and values (+7 %), with two producer warpgroups
// (+11 %); keys copied into place without a detour (+3 %); keys stored without bank conflicts (+1 %);
// more exp as polynomials on the FMA pipe (D = 64: 4, 8, 16 of 32: big +3, +8, +20 %; D = 128: 8, 16 of 32: -1, +4 %; three
// warpgroups, 4 of 32: +1 %), or in FP16 arithmetic (D = 64, 4 and 8 of 16 pairs: big -3 %, -1 %, but 8 % are lost to the
// registers it needs; D = 128 +3 %, +1 %); sums of weights by wgmma for D = 128 (+-1 %); three warpgroups for D = 64 (big 161);
// two with two tiles of scores each (big 174); FP16 chosen tile by tile by the producer, whose vote delays it (very_long 314 on
// dominant inputs); large keys computed again only by warps with large queries (wrong by 0.07 where V is large too, once in
// 2 million outputs); weights before signs for D = 128 (long problems -1 %, short ones +6 %); three or four tiles on their way
// for D = 128 (+-1 %); 14 bits instead of 21 for weights that count (large -0.5 %).
//
// Launch: any grid (best: as many blocks as SMs, or fewer if there is less work), block THREADS, dynamic shared memory
// Shared::BYTES; three warpgroups, not causal: clusters of two blocks.

#include "stage7_warpgroup.cuh"

// The two results of a pair of blocks, which have done half of an item's keys each, become one: rank 0 gets the first half of the
// columns, rank 1 the second. They are sent as FP16, divided by their sums, to the ring of tiles, which is not used any more.
__device__ __forceinline__ void merge_pair(Output& x, uint32_t room, int group, int rank) {
    constexpr int HALF = DIM / 4, STEP = 128 * 16; // registers of O; bytes of four words of all threads
    uint32_t mine = room + group * ((HALF / 8 + 1) * STEP) + threadIdx.x % 128 * 16, theirs;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"(rank ^ 1));
    auto send = [&](int i, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
        asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(theirs + i * STEP), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    };
    float norm[2] = {__fdividef(1, x.sum[0]), __fdividef(1, x.sum[1])};
    meet_in_pair();
#pragma unroll
    for (int i = 0; i < HALF / 8; i++) {
        uint32_t y[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int at = 8 * i + 2 * j;
            y[j] = pack_half2((rank == 0 ? x.o[HALF + at] : x.o[at]) * norm[j % 2], (rank == 0 ? x.o[HALF + at + 1] : x.o[at + 1]) * norm[j % 2]);
        }
        send(i, y[0], y[1], y[2], y[3]);
    }
    send(HALF / 8, __float_as_uint(x.shift[0]), __float_as_uint(x.shift[1]), __float_as_uint(x.sum[0]), __float_as_uint(x.sum[1]));
    meet_in_pair();
    uint4 end = load_words(mine + HALF / 8 * STEP);
    float shift[2] = {__uint_as_float(end.x), __uint_as_float(end.y)}, sum[2] = {__uint_as_float(end.z), __uint_as_float(end.w)}, by[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float best = fmaxf(x.shift[r], shift[r]);
        by[r] = exp2_fast(x.shift[r] - best);
        sum[r] *= exp2_fast(shift[r] - best);
        x.sum[r] = x.sum[r] * by[r] + sum[r];
    }
#pragma unroll
    for (int i = 0; i < HALF / 8; i++) {
        uint4 y = load_words(mine + i * STEP);
        uint32_t word[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float2 their = __half22float2(*reinterpret_cast<__half2*>(&word[j]));
            int r = j % 2;
#pragma unroll
            for (int at = 8 * i + 2 * j; at < DIM / 2; at += HALF) // ours, and one that is not used
                x.o[at] = x.o[at] * by[r] + their.x * sum[r], x.o[at + 1] = x.o[at + 1] * by[r] + their.y * sum[r];
        }
    }
}

template <Mode MODE>
__device__ __forceinline__ void attend(const Problem& p, uint32_t room, const Share& share, uint32_t before, int group, float scale) {
    constexpr bool POLYNOMIAL = CONSUMERS == 2 && MODE != HALVES_ONLY;
    int row_group = group % p.row_groups, key_group = group / p.row_groups, key_groups = CONSUMERS / p.row_groups;
    int item = share.item, block = p.block(item), first = (block * p.row_groups + row_group) * 64;
    Queries<MODE> q;
    q.load(room, p.q + (size_t)p.head(item) * p.S * DIM, first, p.S, group);
    Output x;
    x.clear();

    // Tile t of the share has number before + t in the ring. With causal, the last tiles may be for other rows only.
    int tiles = share.to - share.from;
    int needed = first >= p.S ? 0 : p.causal ? min(tiles, first / KEYS + 1) : tiles;
    int t = key_group;
    uint32_t number = before + t;
    if (t < needed) {
        float s[32];
        uint32_t weights[16];
        uint32_t last = number % STAGES;
        barrier_wait(room + Shared::FULL + last * 8, number / STAGES % 2);
        uint32_t mark[2];
        q.load_marks(mark, room, number);
        q.begin_scores(s, room + Shared::K + last * HALVES);
        uint32_t large = q.large_halves(mark, number);
        wgmma_wait<0>();
        hold(s);
        bool read = q.correct_scores(s, room, number, large); // the last tile, by this warp's lanes
        mask_tile(s, (share.from + t) * KEYS, first, p.S, p.causal);
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
                q.load_marks(mark, room, number);
                q.begin_scores(s, room + Shared::K + stage * HALVES);
                begin_values(x.o, weights, room + Shared::V + last * HALVES, room + Shared::ONES_AT);
                large = q.large_halves(mark, number);
                wgmma_wait<1>();
                hold(s);
                x.moved = false;
                bool reads = q.correct_scores(s, room, number, large);
                mask_tile(s, (share.from + t) * KEYS, first, p.S, p.causal);
                bool fits = TRY && MODE == CODES_ONLY && x.try_weights(s, scale);
                if (MODE == HALVES_ONLY) {
                    x.to_few_weights<false>(s, scale, room);
                } else if (!fits) {
                    if (TRY && MODE == CODES_ONLY) {
                        q.compute_again(s, room, number);
                        reads = true;
                        mask_tile(s, (share.from + t) * KEYS, first, p.S, p.causal);
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
    int thread = thread_index(), rank = -1; // of this block in a pair that shares the item
    if (PAIRS && share.half) {
        rank = blockIdx.x % 2;
        merge_pair(x, room, group, rank);
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float norm = __fdividef(v_scale, x.sum[r]);
        int row = first + thread / 32 % 4 * 16 + thread % 32 / 4 + 8 * r;
        if (row >= p.S) continue;
        __half* to = p.o + ((size_t)p.head(item) * p.S + row) * DIM + thread % 4 * 4;
#pragma unroll
        for (int i = 0; i < DIM / 16; i++)
            if (rank < 0 || rank == i / (DIM / 32)) *reinterpret_cast<uint2*>(to + 16 * i) = make_uint2(pack_half2(x.o[8 * i + 2 * r] * norm, x.o[8 * i + 2 * r + 1] * norm),
                                                                pack_half2(x.o[8 * i + 4 + 2 * r] * norm, x.o[8 * i + 5 + 2 * r] * norm));
    }
}

__device__ __forceinline__ void consume(const Problem& p, uint32_t room) {
    int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    uint32_t before = 0; // tiles of the items so far
    Share share;
    for (int i = 0; p.take(i, share); i++) {
        int item = share.item;
        if (DIM == 64) {
            // Q comes from memory while the scales do.
            int row = (p.block(item) * p.row_groups + group % p.row_groups) * 64 + threadIdx.x % 128 / 2;
            asm volatile("prefetch.global.L2 [%0];" ::"l"(p.q + ((size_t)p.head(item) * p.S + min(row, p.S - 1)) * DIM + threadIdx.x % 2 * (DIM / 2)));
        }
        float scale = p.scale(p.head(item));
        switch (choose_mode(scale)) {
        case CODES_ONLY: attend<CODES_ONLY>(p, room, share, before, group, scale); break;
        case CODES_MOSTLY: attend<CODES_MOSTLY>(p, room, share, before, group, scale); break;
        default: attend<HALVES_ONLY>(p, room, share, before, group, scale);
        }
        before += share.to - share.from;
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
    Problem p = {q, k, v, q_scale, k_scale, v_scale, o, B, H, S, causal != 0, row_groups, false};
    p.paired = PAIRS && !p.causal && p.pairs_help();
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
        if (PAIRS && p.paired && p.pair_items() % 2) {
            meet_in_pair();
            meet_in_pair();
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONSUMER_REGISTERS));
        consume(p, room);
    }
}
