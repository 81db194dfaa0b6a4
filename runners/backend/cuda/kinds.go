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
	sides "github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// codes is the machine code of a side by kind of launch, see manifest.Special. Compilers that do
// not distinguish launches have one kind.
type codes struct {
	side    runners.Side
	by      compiler
	exact   bool            // the code depends on the values of scalars, see manifest.Specials
	picks   []manifest.Pick // of a kernel whose configurations were all tried
	cubins  map[string]*toolchain.Cubin
	entries map[string]string // of Triton: the kernel that the code of a key belongs to
}

// A madeCode names a variant of a side that was compiled.
type madeCode struct {
	role    runners.Role
	variant string
}

// kindsOf returns the kinds of all launches that are known before anything runs. The compiler is
// asked for these.
func kindsOf(m *manifest.Manifest, variant string, exact bool) ([]manifest.Special, error) {
	all, err := specials(m, variant, m.Sizes(variant), exact)
	if err == nil && len(all) == 0 {
		return []manifest.Special{{}}, nil // only Triton specialises for sizes, and its kernels have at least one kind
	}
	return all, err
}

func specials(m *manifest.Manifest, variant string, sizes []manifest.Dims, exact bool) ([]manifest.Special, error) {
	var all []manifest.Special
	for _, dims := range sizes {
		list, err := m.Specials(variant, dims, nil, exact)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			if !slices.ContainsFunc(all, func(o manifest.Special) bool { return o.Key() == s.Key() }) {
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// add records cubins by their kinds.
func (k *codes) add(asked []manifest.Special, made []*toolchain.Cubin) {
	for i, s := range asked {
		k.cubins[s.Key()] = made[min(i, len(made)-1)]
		k.entries[s.Key()] = s.Entry
	}
}

// at returns the code for a size: one for each kernel of the launch in order, or one for all of
// them.
func (k *codes) at(m *manifest.Manifest, dims manifest.Dims) ([]*toolchain.Cubin, error) {
	list, err := m.Specials(k.side.Variant, dims, nil, k.exact)
	if err != nil {
		return nil, err
	}
	var all []*toolchain.Cubin
	for _, s := range list {
		cubin := k.cubins[s.Key()]
		if cubin == nil {
			return nil, fmt.Errorf("nothing was compiled for %s", dims)
		}
		all = append(all, cubin)
	}
	return all, nil
}

// of returns the code of a kernel for all kinds of launches, and its position in each cubin.
func (k *codes) of(entry string, number int) (cubins []*toolchain.Cubin, place int) {
	for _, key := range slices.Sorted(maps.Keys(k.cubins)) {
		switch k.entries[key] {
		case "":
			cubins, place = append(cubins, k.cubins[key]), number
		case entry:
			cubins = append(cubins, k.cubins[key])
		}
	}
	return cubins, place
}

// of returns the manifest that a side is built and launched by, with the configurations that were
// picked.
func (b *Backend) of(k *codes) *manifest.Manifest { return b.job.Of(k.side).Picked(k.picks) }

// code identifies all machine code of a side and, if its compiler decides them, its launches. It
// goes size by size, because authors can choose the names of kinds freely.
func (k *codes) code(m *manifest.Manifest) (string, error) {
	h := sha256.New()
	if only := slices.Collect(maps.Values(k.cubins)); len(only) == 1 && only[0].Start == nil {
		return only[0].Code, nil
	}
	for _, dims := range m.Sizes(k.side.Variant) {
		cubins, err := k.at(m, dims)
		if err != nil {
			return "", err
		}
		for _, cubin := range cubins {
			start, err := json.Marshal(cubin.Start)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s %s %s\n", dims, cubin.Code, start)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// compileKinds compiles all kinds of launches that are known before anything runs. A kernel with
// @triton.heuristics reports that when it is imported, and is compiled again with the values of its
// functions.
func (b *Backend) compileKinds(ctx context.Context, role runners.Role, k *codes, m *manifest.Manifest) ([]manifest.Special, []*toolchain.Cubin, error) {
	name := b.compilationOf(role, k.side.Variant)
	asked, err := kindsOf(m, k.side.Variant, false)
	if err != nil {
		return nil, nil, err
	}
	cubins, err := b.compile(ctx, name, k.by, asked)
	if !errors.Is(err, toolchain.ErrNeedsExact) {
		return asked, cubins, err
	}
	k.exact = true
	if asked, err = kindsOf(m, k.side.Variant, true); err != nil {
		return nil, nil, err
	}
	cubins, err = b.compile(ctx, name+"-exact", k.by, asked)
	return asked, cubins, err
}

// built returns what a side's process needs to know about its code, in a separate file if there is
// more than one kind.
func (b *Backend) built(role runners.Role, k *codes, m *manifest.Manifest) (*sides.Built, error) {
	built := &sides.Built{Variant: k.side.Variant, Toggles: m.ToggleValues(k.side.Variant), Exact: k.exact, Picks: k.picks}
	all := map[string]sides.Built{}
	for key, cubin := range k.cubins {
		entries := m.Entries(k.side.Variant)
		if k.entries[key] != "" {
			entries = []string{k.entries[key]}
		}
		one := sides.Built{Image: cubin.Path, Symbols: symbols(cubin, entries), Start: cubin.Start}
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
		b.told++
		built.Kinds = filepath.Join(b.config.Scratch, string(role)+"-kinds-"+strconv.Itoa(b.told)+".json")
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

// cover compiles the code for launches of sizes that were not known before: a secret shape may be
// of a kind that no named shape has. The failure is the candidate's: its source compiles for other
// sizes, but not for these.
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
		m := b.of(k)
		asked, err := specials(m, k.side.Variant, sizes, k.exact)
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

// uncovered returns the first case without code of the candidate, and the failure. A timed secret
// shape is not a case, so it becomes one.
func (b *Backend) uncovered(cases []worker.Case, timed []manifest.Shape, failure *gates.Failure) gates.Case {
	k := b.kinds[runners.Candidate]
	all := slices.Clone(cases)
	for _, s := range timed {
		_, named := b.job.Manifest.Shape(s.Listed())
		all = append(all, worker.Case{Case: runners.Case{Shape: s, Distribution: distribution.Normal, Secret: !named}})
	}
	i := max(0, slices.IndexFunc(all, func(c worker.Case) bool {
		_, err := k.at(b.of(k), c.Shape.Dims)
		return err != nil
	}))
	failed := all[i].Evidence()
	failed.Failure = failure
	return failed
}
