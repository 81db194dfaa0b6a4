#include "sum.h"
#include <benchmark/benchmark.h>
#include <vector>

static void BM_sum(benchmark::State &state)
{
    std::vector<float> x(state.range(0), 0.5f);
    for (auto _ : state) {
        float s = sum(x.data(), (int)x.size());
        benchmark::DoNotOptimize(s);
    }
}
BENCHMARK(BM_sum)->ArgName("N")->Arg(64)->Arg(4096);
BENCHMARK_MAIN();
