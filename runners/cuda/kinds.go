package cuda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	sides "github.com/kernelgate/kernelgate/runners/cuda/side"
	"github.com/kernelgate/kernelgate/runners/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/toolchain"
	"github.com/kernelgate/kernelgate/runners/toolchain/output"
)

// codes is the machine code of a side by the launches that it is for, see kernels.Special. Compilers that know nothing of launches
// have one.
type codes struct {
	side   runners.Side
	by     compiler
	cubins map[string]*toolchain.Cubin
}

// A madeCode names a variant of a side that was compiled.
type madeCode struct {
	role    runners.Role
	variant string
}

// kindsOf is what a compiler is asked for before anything runs: the kinds of all launches that are known by then.
func kindsOf(m *manifest.Manifest, variant string) ([]manifest.Special, error) {
	all, err := specials(m, variant, m.Sizes(variant))
	if err == nil && len(all) == 0 {
		return []manifest.Special{{}}, nil // no compiler but Triton looks at sizes, and its kernels have one at least
	}
	return all, err
}

func specials(m *manifest.Manifest, variant string, sizes []manifest.Dims) ([]manifest.Special, error) {
	var all []manifest.Special
	for _, dims := range sizes {
		s, err := m.Special(variant, dims, nil)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(o manifest.Special) bool { return o.Key() == s.Key() }) {
			all = append(all, s)
		}
	}
	return all, nil
}

// add notes cubins by their kinds.
func (k *codes) add(asked []manifest.Special, made []*toolchain.Cubin) {
	for i, s := range asked {
		k.cubins[s.Key()] = made[min(i, len(made)-1)]
	}
}

// at is the code for a size.
func (k *codes) at(m *manifest.Manifest, dims manifest.Dims) (*toolchain.Cubin, error) {
	s, err := m.Special(k.side.Variant, dims, nil)
	if err != nil {
		return nil, err
	}
	cubin := k.cubins[s.Key()]
	if cubin == nil {
		return nil, fmt.Errorf("nothing was compiled for %s", dims)
	}
	return cubin, nil
}

// code stands for all machine code of a side, and for how it is launched where its compiler says so: size by size, since what a kind
// is called is the author's affair.
func (k *codes) code(m *manifest.Manifest) (string, error) {
	h := sha256.New()
	if only := slices.Collect(maps.Values(k.cubins)); len(only) == 1 && only[0].Start == nil {
		return only[0].Code, nil
	}
	for _, dims := range m.Sizes(k.side.Variant) {
		cubin, err := k.at(m, dims)
		if err != nil {
			return "", err
		}
		start, err := json.Marshal(cubin.Start)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s %s\n", dims, cubin.Code, start)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// built is what a side's process is told, in a file of its own where there is more than one kind to tell of.
func (b *Backend) built(role runners.Role, k *codes, m *manifest.Manifest) (*sides.Built, error) {
	built := &sides.Built{Variant: k.side.Variant, Toggles: m.ToggleValues(k.side.Variant)}
	all := map[string]sides.Built{}
	for key, cubin := range k.cubins {
		one := sides.Built{Image: cubin.Path, Symbols: symbols(cubin, m.Entries(k.side.Variant)), Start: cubin.Start}
		for _, g := range cubin.Globals {
			one.Globals = append(one.Globals, g.Name)
		}
		all[key] = one
		built.Image, built.Symbols, built.Globals, built.Start = one.Image, one.Symbols, one.Globals, one.Start
	}
	if m.Compiler == manifest.Triton {
		text, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		built.Kinds = filepath.Join(b.config.Scratch, string(role)+"-kinds-"+strconv.Itoa(len(all))+".json")
		if err := os.WriteFile(built.Kinds, text, 0o644); err != nil {
			return nil, fmt.Errorf("writing the %s's code for its process: %w", role, err)
		}
	}
	if k.side.Manifest != nil {
		built.Manifest = filepath.Join(b.config.Scratch, string(role)+".yaml")
		if err := os.WriteFile(built.Manifest, []byte(k.side.ManifestText), 0o644); err != nil {
			return nil, fmt.Errorf("writing the %s's manifest: %w", role, err)
		}
	}
	return built, nil
}

// cover has the code compiled that launches of these sizes need and that was not known to be needed: a secret shape may be of a kind
// of its own. The failure is the candidate's, whose source compiles for other sizes and not for these.
func (b *Backend) cover(ctx context.Context, cases []worker.Case, timed []manifest.Shape) (*gates.Failure, error) {
	var sizes []manifest.Dims
	for _, c := range cases {
		sizes = append(sizes, c.Shape.Dims)
	}
	for _, s := range timed {
		sizes = append(sizes, s.Dims)
	}
	for _, role := range []runners.Role{runners.Baseline, runners.Candidate} {
		k := b.kinds[role]
		if k == nil {
			continue
		}
		m := b.job.Of(k.side)
		asked, err := specials(m, k.side.Variant, sizes)
		if err != nil {
			return nil, err
		}
		asked = slices.DeleteFunc(asked, func(s manifest.Special) bool { return k.cubins[s.Key()] != nil })
		if len(asked) == 0 {
			continue
		}
		name := sha256.New()
		for _, s := range asked {
			fmt.Fprintln(name, s.Key())
		}
		made, err := b.compile(ctx, fmt.Sprintf("%s-%x", role, name.Sum(nil)[:8]), k.by, asked)
		refusal, refused := errors.AsType[*output.CompileError](err)
		switch {
		case refused && role == runners.Candidate:
			return &gates.Failure{Kind: gates.FailureBuild, Detail: "the kernel does not compile for it: " + refusal.Summary}, nil
		case err != nil:
			return nil, fmt.Errorf("compiling the %s for more shapes: %w", role, err)
		}
		k.add(asked, made)
		if b.sides[role], err = b.built(role, k, m); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// uncovered is the first case that the candidate has no code for, with how that failed. A
// secret shape that is timed is no case: it becomes one.
func (b *Backend) uncovered(cases []worker.Case, timed []manifest.Shape, failure *gates.Failure) gates.Case {
	k := b.kinds[runners.Candidate]
	all := slices.Clone(cases)
	for _, s := range timed {
		_, named := b.job.Manifest.Shape(s.Name)
		all = append(all, worker.Case{Case: runners.Case{Shape: s, Distribution: distribution.Normal, Secret: !named}})
	}
	i := max(0, slices.IndexFunc(all, func(c worker.Case) bool {
		_, err := k.at(b.job.Of(k.side), c.Shape.Dims)
		return err != nil
	}))
	failed := all[i].Evidence()
	failed.Failure = failure
	return failed
}
