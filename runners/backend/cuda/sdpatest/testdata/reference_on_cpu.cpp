// Runs ../reference.cu on a CPU, a warp at a time. The lanes are contexts that take
// turns: each runs until it exchanges a value, and goes on when all have got so far.
//
// usage: reference_on_cpu B H S D causal    Q, K and V in FP32 on standard input, O on standard output

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)

constexpr int LANES = 32;

struct Index {
    unsigned x;
};
static Index blockIdx, threadIdx;

static ucontext_t turns, lanes[LANES];
static int exchanges[LANES];
// Two rooms: a lane may be one exchange ahead of those that still read.
static float exchanged[2][LANES];

static float __shfl_xor_sync(unsigned, float value, int mask) {
    int lane = threadIdx.x % LANES, room = exchanges[lane]++ % 2;
    exchanged[room][lane] = value;
    swapcontext(&lanes[lane], &turns);
    return exchanged[room][lane ^ mask];
}

#include "../../../../../kernels/sdpa_fp8/reference.cu"

static int B, H, S, D, causal;
static std::vector<float> q, k, v, o;
static int running;

static void run_lane() {
    sdpa_reference(q.data(), k.data(), v.data(), o.data(), B, H, S, D, causal);
    running--;
}

static void run_warp(unsigned block, unsigned first_thread, std::vector<char>& stacks) {
    blockIdx.x = block;
    bool begun[LANES] = {}, ended[LANES] = {};
    running = LANES;
    while (running > 0)
        for (int lane = 0; lane < LANES; lane++) {
            if (ended[lane]) continue;
            if (!begun[lane]) {
                getcontext(&lanes[lane]);
                lanes[lane].uc_stack.ss_sp = &stacks[lane * (stacks.size() / LANES)];
                lanes[lane].uc_stack.ss_size = stacks.size() / LANES;
                lanes[lane].uc_link = &turns;
                makecontext(&lanes[lane], run_lane, 0);
                begun[lane] = true;
            }
            int before = running;
            threadIdx.x = first_thread + lane;
            swapcontext(&turns, &lanes[lane]);
            ended[lane] = running < before;
        }
}

int main(int argc, char** argv) {
    if (argc != 6) return fprintf(stderr, "usage: reference_on_cpu B H S D causal\n"), 2;
    B = atoi(argv[1]), H = atoi(argv[2]), S = atoi(argv[3]), D = atoi(argv[4]), causal = atoi(argv[5]);
    size_t elements = (size_t)B * H * S * D;
    for (std::vector<float>* x : {&q, &k, &v}) {
        x->resize(elements);
        if (fread(x->data(), sizeof(float), elements, stdin) != elements) return fprintf(stderr, "the input ends too soon\n"), 2;
    }
    o.assign(elements, NAN);
    std::vector<char> stacks(LANES * 65536);
    for (int block = 0; block < (B * H * S + 3) / 4; block++)
        for (unsigned warp = 0; warp < 4; warp++) run_warp(block, warp * LANES, stacks);
    return fwrite(o.data(), sizeof(float), elements, stdout) == elements ? 0 : 1;
}
