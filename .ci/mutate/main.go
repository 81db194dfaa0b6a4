// Command mutate tells how much of the deciding code the tests would notice if it were wrong.
//
// It samples small faults ("mutants") of the packages in targets.go with a fixed seed, has the tests run with each of them, and prints
// the mutants that no test noticed. `make mutate` runs it.
//
// All sampled mutants are compiled into the same test binaries, each behind a switch that an environment variable turns on, so a
// mutant costs the run of a few tests and no build. The altered sources reach the compiler through -overlay: no file of the checkout
// is touched. Each test first runs once without a mutant, which records the mutants that it reaches; a mutant is then tried by the
// tests that reach it, the quickest first.
//
// gremlins v0.6.0, the tool that others use, does not replace it: it has no mutants that remove a statement or a case, drop a
// returned error, return a different result or move a constant (gates/stats has 349 mutants there, and 783 here). It builds once for
// each mutant, and runs either the tests of the mutant's own package or all tests of the module, never those of named packages.
//
// Text is not mutated: messages, formats and logs are left out.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

type options struct {
	dir      string // of the module
	targets  []target
	seed     uint64
	n        int
	packages []string // import paths below the module, as "gates/stats"; empty for all
	factor   float64
	json     bool
}

func main() {
	o := options{dir: ".", targets: targets}
	var packages string
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.IntVar(&o.n, "n", 300, "number of mutants to try; 0 tries all")
	flag.StringVar(&packages, "packages", "", "comma-separated packages of targets.go, such as gates,gates/stats (default all)")
	flag.Float64Var(&o.factor, "timeout", 10, "a test that takes this many times its usual time (and 10 s) has noticed the mutant")
	flag.BoolVar(&o.json, "json", false, "print every mutant and its fate as JSON")
	flag.Parse()
	if packages != "" {
		o.packages = strings.Split(packages, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mutate(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate writes the result to out, and what it is doing to progress.
func mutate(ctx context.Context, o options, out, progress io.Writer) error {
	chosen, err := choose(o.targets, o.packages)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	module, err := load(ctx, o.dir, chosen)
	if err != nil {
		return err
	}
	sampled, total := module.sample(o.seed, o.n)
	fmt.Fprintf(progress, "%d of %d possible mutants\n", len(sampled), total)
	overlay, err := module.writeOverlay(dir, sampled)
	if err != nil {
		return err
	}
	s := &suite{dir: dir, root: module.root, overlay: overlay, factor: o.factor, progress: progress, users: map[string][]string{}, binaries: map[string]*binary{}}
	for _, t := range chosen {
		s.users[t.pkg] = t.users
	}
	begun := time.Now()
	for i, m := range sampled {
		if err := s.try(ctx, m); err != nil {
			return err
		}
		if m.KilledBy == "" {
			fmt.Fprintf(progress, "%d/%d (%.0f s) %s\n", i+1, len(sampled), time.Since(begun).Seconds(), m)
		}
	}
	if o.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(sampled)
	}
	return report(out, sampled)
}

func choose(all []target, names []string) ([]target, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []target
	for _, name := range names {
		found := false
		for _, t := range all {
			if t.pkg == filepath.ToSlash(filepath.Clean(name)) {
				chosen, found = append(chosen, t), true
			}
		}
		if !found {
			return nil, fmt.Errorf("-packages: %s is not in .ci/mutate/targets.go", name)
		}
	}
	return chosen, nil
}
