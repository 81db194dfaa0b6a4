// Package plan finds out what a change needs to have measured: the kernels that differ between two
// states of a repository, the rule for each, and a job with the files to build. Policy, reference
// and the problem half of the manifest come from the base. The head supplies the implementation:
// kernel sources, and how they are built and launched. The bot plans pull requests with it, and
// kernelgate check plans local changes. The package measures and judges nothing.
package plan

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

// PolicyFile is the path of the policy in a repository.
const PolicyFile = ".github/kernelgate.yaml"

// Options say which change to plan, and what the caller asks for in addition to the policy.
type Options struct {
	Repo *checkout.Repo
	Base string // revision that the change is compared with
	Head string // revision, or the work tree
	// Trusted is the revision whose policy, problems and references apply; "" means Base. A bot
	// uses the tip of the base branch: a change must not choose an old base to be judged by its
	// milder rules.
	Trusted string
	Scratch string // folder for the files to build

	Kernels []string      // by name, folder or manifest; none means those that the change touches
	Change  policy.Change // New fills in its Paths
	// Policy is a file, or the name of a shipped policy; "" means the trusted revision's.
	Policy string
	// PolicyRoot is the folder that must contain the policy's file if an untrusted party named the
	// file; "" allows any file.
	PolicyRoot string
	// ParsePolicy parses a policy, for a caller that has parsed it before; nil means policy.Parse.
	// The plan does not change the policy, and gives all jobs the same one.
	ParsePolicy func(file string, text []byte) (*policy.Policy, error)
	// CheckManifest returns the mistakes in a manifest, for a caller that has parsed it before; nil
	// means those of manifest.Parse.
	CheckManifest func(file string, text []byte) error
	// PolicyAt uses the policy of a different revision, for information, such as a head that adds
	// the first policy.
	PolicyAt string

	// Variant and BaselineVariant compare two ways to build the same state instead of two states.
	Variant, BaselineVariant string
	// Versus compares with a different revision than Base, or with the head itself.
	Versus string

	// Baseline replaces the policy's baseline in every rule: base or best; nil means the policy's.
	Baseline *policy.Baseline
	// Device is the device of the policy that the jobs are for; "" if any one runner is enough.
	Device string
	// Pinned has the commits that replace the base as the baseline of single kernels, by key.
	Pinned map[string]string

	// Faster returns the merged states of a job's kernel that are faster than the merge base,
	// fastest first, for a policy that compares with the best. It is nil if the history of merges
	// is not known.
	Faster func(context.Context, runners.Job) ([]Faster, error)

	// Before and After override the compilers that the policy pins, to compare the results of two
	// compilers on the same state.
	Before, After policy.Toolchains

	// Repairs means that somebody approves a change of a manifest before it is merged. So a change
	// that repairs a manifest of the base is judged by the repaired one.
	Repairs bool

	// Fetcher gets recordings from the addresses that the base's manifests name; nil gets none.
	Fetcher *recordings.Fetcher

	Static bool // leave out every gate that has to run the kernel
	Rounds int  // the maximum number of rounds; 0 means the policy's

	Repository string // its name, for the record; "" means the folder's name
	Host       string
	Version    string
	Started    time.Time
}

// Self as Options.Versus compares the head with itself.
const Self = "self"

// A Plan is a change whose edits were examined.
type Plan struct {
	opt     Options
	changed []string
	edited  map[string]bool // the same files, for lookups
	removed []string        // kernels of the base that the head does not have
	shared  map[string]bool // kernels that share their folder
	moved   map[string]bool // kernels whose compiler the change moves
	pins    *pins
	// policies is shared by the plans of As and On.
	policies *parsedPolicies
	// reads holds the files that a kernel's build may read in addition to those of a folder that
	// only it uses, at the base or at the head.
	reads map[string]map[string]bool
	// homes holds the folders of a kernel's files by the base's manifest, or by the head's if the
	// kernel is new.
	homes map[string][]string
}

// New examines which files the change touches.
func New(ctx context.Context, opt Options) (*Plan, error) {
	opt.Trusted = cmp.Or(opt.Trusted, opt.Base)
	if opt.ParsePolicy == nil {
		opt.ParsePolicy = policy.Parse
	}
	if opt.CheckManifest == nil {
		opt.CheckManifest = func(file string, text []byte) error {
			_, err := manifest.Parse(file, text)
			return err
		}
	}
	p := &Plan{opt: opt, policies: &parsedPolicies{parse: opt.ParsePolicy, known: map[policySource]*policy.Policy{}}}
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

// Changed returns the files that the change touches.
func (p *Plan) Changed() []string { return p.changed }

// As returns the plan for the same files as a different kind of change, to which a different rule
// may apply.
func (p *Plan) As(c policy.Change) *Plan {
	other := *p
	other.opt.Change = c
	return &other
}

// On returns the plan for the same files on a device of the policy, with the baselines of that device.
func (p *Plan) On(device string, pinned map[string]string) *Plan {
	other := *p
	other.opt.Device, other.opt.Pinned = device, pinned
	return &other
}

// Kernels returns the keys of the kernels to check.
func (p *Plan) Kernels(ctx context.Context) ([]string, error) {
	for _, refuse := range []func(context.Context) error{p.refuseMisplaced, p.refuseUnreadable} {
		if err := refuse(ctx); err != nil {
			return nil, err
		}
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
			return nil, usage.Errorf("the repository has %d kernels: name the one whose variants to compare (there are %s)", len(all), strings.Join(all, ", "))
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
	if err := p.convert(ctx, all); err != nil {
		return nil, err
	}
	touched := slices.DeleteFunc(all, func(key string) bool { return !p.Touches(key, p.changed) && !(p.byHand() && p.moved[key]) })
	if len(touched) == 0 {
		return nil, p.newPolicy(ctx)
	}
	return touched, nil
}

// Touches reports whether a change of these files changes the kernel: its manifest, any file that
// its build or its reference may read or, if only this kernel uses its folder, anything there. A
// policy that pins a different compiler touches every kernel that the compiler builds.
func (p *Plan) Touches(key string, files []string) bool {
	manifest, folder := manifest.FileOf(key), manifest.FolderOf(key)
	return slices.ContainsFunc(files, func(f string) bool {
		return f == manifest || f == PolicyFile && p.moved[key] || !p.shared[key] && strings.HasPrefix(f, folder+"/") || p.reads[key][f]
	})
}

// PathsOf returns the files of a change that belong to the kernel. A rule for paths is matched
// against these. It leaves out files that the kernel reads in folders that only the head's manifest
// names: the author of that manifest must not choose the rule by it.
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

// withNewer adds the kernels that the base branch has put under the gate since the head branched
// off. An old base is no way around the gate.
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
