package stats_test

import (
	"fmt"
	"log"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// Six fresh processes have timed a kernel beside its baseline. Each value is a ratio,
// baseline over candidate; the processes differ more than the launches in one of them.
func ExampleBootstrap() {
	sample := stats.Sample{Rounds: [][]float64{
		{1.121, 1.118, 1.124, 1.119},
		{1.131, 1.134, 1.129, 1.136},
		{1.109, 1.112, 1.111, 1.108},
		{1.127, 1.122, 1.125, 1.128},
		{1.116, 1.119, 1.113, 1.117},
		{1.124, 1.121, 1.126, 1.123},
	}}
	d, err := stats.Bootstrap(sample, stats.Options{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	i := d.Interval(0.95)
	fmt.Printf("%.3f [%.3f, %.3f] from %d rounds\n", d.Estimate, i.Lower, i.Upper, d.Rounds)
	fmt.Println("at least +10%:", d.Lower(0.025) >= 1.10)
	fmt.Println("at least +12%:", d.Lower(0.025) >= 1.12)
	// Output:
	// 1.121 [1.111, 1.131] from 6 rounds
	// at least +10%: true
	// at least +12%: false
}

// One round shows nothing of how rounds differ, however many values it has.
func ExampleBootstrap_oneRound() {
	_, err := stats.Bootstrap(stats.Sample{Rounds: [][]float64{{1.1, 1.2, 1.1, 1.2}}}, stats.Options{})
	fmt.Println(err)
	// Output:
	// bootstrap: 1 measured: needs at least 2 rounds to see how rounds differ; measure more
}

// Whoever looks three times spends the error rate in three parts.
func ExampleSpend() {
	parts, err := stats.Spend(0.025, []int{6, 13, 20})
	if err != nil {
		log.Fatal(err)
	}
	sum := 0.0
	for _, p := range parts {
		fmt.Printf("%.4f ", p)
		sum += p
	}
	fmt.Printf("= %.3f\n", sum)
	// Output:
	// 0.0075 0.0088 0.0088 = 0.025
}

// Three shapes are tested at once: the smallest p-value must be the smallest by far.
func ExampleHolm() {
	fmt.Println(stats.Holm([]float64{0.001, 0.03, 0.04}, 0.05))
	// Output:
	// [true false false]
}
