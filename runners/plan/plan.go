// Package plan finds what a change asks to be measured: the kernels between two
// states of a repository, the rule for each, and a job with the files to build.
// Policy, reference and the manifest's problem are the base's; the head supplies
// the implementation: kernel sources, and how they are built and launched. The
// package measures and judges nothing.
package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/checkout"
)

// PolicyFile is where a repository keeps its policy.
const PolicyFile = ".github/kernelgate.yaml"

// Options say which change, and what somebody asked beyond the policy.
type Options struct {
	Repo *checkout.Repo
	Base string // revision that the change is compared with
	Head string // revision, or the work tree
	// Trusted is the revision whose policy, problems and references hold; "" is
	// Base. A bot takes the tip of the base branch: a change must not choose an old
	// base to be judged by its milder rules.
	Trusted string
	Scratch string // folder for the files to build

	Kernels []string      // by name, folder or manifest; none means those that the change touches
	Change  policy.Change // its Paths are found
	Policy  string        // a file, or the name of a shipped policy; "" takes the trusted revision's
	// PolicyRoot is the folder that the policy's file must be in, where somebody else has named it; "" allows any file.
	PolicyRoot string
	// PolicyAt takes the policy of another revision, for information, such as a
	// head that brings the first one.
	PolicyAt string

	// Variants compare two ways to build the same state instead of two states.
	Variant, BaselineVariant string
	// Versus compares with another revision than Base, or with the head itself.
	Versus string

	// Faster is the merged states of a job's kernel that are faster than the merge base, fastest first, for a policy that
	// compares with the best. It is nil where the history of merges is not known.
	Faster func(context.Context, runners.Job) ([]Faster, error)

	// Before and After take the place of the compilers that the policy pins, to compare what two of them make of the same state.
	Before, After policy.Toolchains

	Static bool // leaves out every gate that has to run the kernel
	Rounds int  // at most so many rounds; 0 leaves it to the policy

	Repository string // its name, for the record; "" is the folder's
	Host       string
	Version    string
	Started    time.Time
}

// Self as Options.Versus compares the head with itself.
const Self = "self"

// A Plan is a change that was looked at.
type Plan struct {
	opt     Options
	changed []string
	edited  map[string]bool // the same, to look up
	removed []string        // kernels of the base that the head does not have
	shared  map[string]bool // kernels whose folder is not theirs alone
	moved   map[string]bool // kernels whose compiler is another
	pins    *pins
	reads   map[string]map[string]bool // files that a kernel's build may read beside those of a folder of its own, at the base or at the head
	homes   map[string][]string        // folders that a kernel's files are in by the base's manifest, or by the head's where it is new
}

// New looks at what the change touches.
func New(ctx context.Context, opt Options) (*Plan, error) {
	opt.Trusted = cmp.Or(opt.Trusted, opt.Base)
	p := &Plan{opt: opt}
	if opt.Variant != "" || p.byHand() {
		return p, nil
	}
	var err error
	p.changed, err = opt.Repo.Changed(ctx, opt.Base, opt.Head)
	p.opt.Change.Paths, p.edited = p.changed, make(map[string]bool, len(p.changed))
	for _, name := range p.changed {
		p.edited[name] = true
	}
	return p, err
}

// Changed is the files that the change touches.
func (p *Plan) Changed() []string { return p.changed }

// As is the plan of the same files as a change of another kind, which a rule may ask
// something else of.
func (p *Plan) As(c policy.Change) *Plan {
	other := *p
	other.opt.Change = c
	return &other
}

// Kernels is the kernels to check, by their keys.
func (p *Plan) Kernels(ctx context.Context) ([]string, error) {
	if err := p.refuseTop(ctx); err != nil {
		return nil, err
	}
	all, err := p.opt.Repo.Kernels(ctx, p.opt.Head)
	if err != nil {
		return nil, err
	}
	before, err := p.opt.Repo.Kernels(ctx, p.opt.Base)
	if err != nil {
		return nil, err
	}
	if all, err = p.withNewer(ctx, all, before); err != nil {
		return nil, err
	}
	if err := p.recompiled(ctx, all); err != nil {
		return nil, err
	}
	if len(p.opt.Kernels) > 0 {
		if err := p.read(ctx, all); err != nil {
			return nil, err
		}
		return p.named(ctx, all, p.opt.Kernels)
	}
	if p.opt.Variant != "" {
		if len(all) != 1 {
			return nil, strict.Mistakef("the repository has %d kernels: name the one whose variants to compare (there are %s)", len(all), strings.Join(all, ", "))
		}
		return all, nil
	}
	for _, key := range before {
		if !slices.Contains(all, key) {
			all = append(all, key)
			p.removed = append(p.removed, key)
		}
	}
	if err := p.read(ctx, all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(key string) bool { return !p.Touches(key, p.changed) && !(p.byHand() && p.moved[key]) }), nil
}

// refuseTop refuses a head with a manifest in the repository's top folder: nothing would gate its kernel. A base that has one
// is not refused, so that a change can move it, nor is somebody who names what to check.
func (p *Plan) refuseTop(ctx context.Context) error {
	if len(p.opt.Kernels) > 0 || p.opt.Variant != "" || p.byHand() {
		return nil
	}
	found, err := p.opt.Repo.TopManifests(ctx, p.opt.Head)
	if err != nil || len(found) == 0 {
		return err
	}
	return strict.Mistake{Err: checkout.Refused{File: found[0], Why: TopManifest}}
}

// TopManifest says what is wrong with a manifest in the repository's top folder.
const TopManifest = "a manifest in the repository's top folder gates no kernel, since its folder would be the whole repository (move it with its source and reference to a folder, e.g. kernels/scale/kernel.yaml; root: csrc names the sources' folder where they stay)"

// Touches tells whether a change of these files is one of the kernel: of its manifest, of
// what its build and its reference may read or, where it has its folder for itself, of
// anything there. A policy that pins another compiler touches all that it builds.
func (p *Plan) Touches(key string, files []string) bool {
	manifest, folder := manifest.FileOf(key), manifest.FolderOf(key)
	return slices.ContainsFunc(files, func(f string) bool {
		return f == manifest || f == PolicyFile && p.moved[key] || !p.shared[key] && strings.HasPrefix(f, folder+"/") || p.reads[key][f]
	})
}

// PathsOf is the files of a change that are the kernel's: a rule for paths is matched against these. It leaves out what the
// kernel reads in folders that only the head's manifest names: whoever writes that manifest must not choose the rule by it.
func (p *Plan) PathsOf(key string, files []string) []string {
	if files == nil {
		return nil
	}
	own := []string{}
	for _, f := range files {
		home := !p.reads[key][f] || slices.ContainsFunc(p.homes[key], func(folder string) bool {
			return f == folder || below(f, folder) || strings.HasPrefix(folder, f+"/")
		})
		if home && p.Touches(key, []string{f}) {
			own = append(own, f)
		}
	}
	return own
}

// withNewer adds the kernels that the base branch has put under the gate since the head
// left it: an old base is no way round.
func (p *Plan) withNewer(ctx context.Context, all, before []string) ([]string, error) {
	if p.opt.Trusted == p.opt.Base {
		return all, nil
	}
	trusted, err := p.opt.Repo.Kernels(ctx, p.opt.Trusted)
	for _, key := range trusted {
		if !slices.Contains(before, key) && !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all, err
}
