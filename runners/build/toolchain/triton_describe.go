package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// A TritonTuning is the configurations that @triton.autotune of a kernel offers.
type TritonTuning struct {
	Configurations []map[string]manifest.Literal `json:"configurations"`
	// Kept says which of them the kernel's own pruning leaves, for each kind of this kernel that
	// was asked about, in order.
	Kept [][]int `json:"kept"`
}

const (
	maxDescription    = 1 << 20
	maxConfigurations = 64
)

// Describe imports the source and returns what its kernels offer to Triton's tuner, by kernel name.
// It compiles nothing. The result is untrusted: a build that chooses a configuration finds out
// whether it exists.
func (t *Triton) Describe(ctx context.Context, b TritonBuild) (map[string]TritonTuning, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	b.describe = true
	read := func(ctx context.Context, in Surroundings) (d description, err error) { return t.describeIn(ctx, b, in) }
	here, there, err := twice(ctx, Elsewhere(cmp.Or(b.Seed, rand.Uint64())), read, func(d description) bool { return d.refusal != nil })
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the configurations of %s: %w", b.Source, err)
	case here.refusal != nil:
		return nil, here.refusal
	case !bytes.Equal(here.text, there.text):
		return nil, &output.CompileError{Summary: fmt.Sprintf("%s: two imports gave other configurations of @triton.autotune: write them so that they depend on nothing but the source", b.Source)}
	}
	var all map[string]TritonTuning
	if err := readStrictly(here.text, &all); err != nil {
		return nil, &output.CompileError{Summary: fmt.Sprintf("what the build of %s says of its configurations cannot be read: %v", b.Source, err)}
	}
	for entry, k := range all {
		if len(k.Configurations) > maxConfigurations {
			return nil, &output.CompileError{Summary: fmt.Sprintf("%s: @triton.autotune of %s offers %d configurations, and up to %d are tried (offer fewer, or choose one under autotune)", b.Source, entryname.Quote(entry), len(k.Configurations), maxConfigurations)}
		}
		for _, kept := range k.Kept {
			if slices.ContainsFunc(kept, func(i int) bool { return i < 0 || i >= len(k.Configurations) }) {
				return nil, &output.CompileError{Summary: fmt.Sprintf("what the build of %s says of its configurations is no list of them", b.Source)}
			}
		}
	}
	return all, nil
}

// A description is the answer of a build, or why it was refused.
type description struct {
	text    []byte
	refusal *output.CompileError
}

func (t *Triton) describeIn(ctx context.Context, b TritonBuild, in Surroundings) (d description, err error) {
	work, err := os.MkdirTemp(b.Scratch, "describe-")
	if err != nil {
		return d, fmt.Errorf("making room for Triton: %w", err)
	}
	defer os.RemoveAll(work)
	refused, log, err := t.imported(ctx, b, work, in)
	if err != nil {
		return d, err
	}
	if refused.Refusal == "" {
		d.text, err = output.ReadFile(filepath.Join(work, "out", "describe.json"), maxDescription)
		if err != nil {
			refused.Refusal = err.Error()
		}
	}
	if refused.Refusal != "" {
		d.refusal = &output.CompileError{Summary: refused.Refusal, Log: log, Diagnostics: diagnosticsIn(log, b.Dir)}
	}
	return d, nil
}
