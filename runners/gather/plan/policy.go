package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// policy finds the policy for the kernel: the named file, the base's policy, or the shipped one
// that suits any kernel.
func (p *Plan) policy(ctx context.Context, job *runners.Job) error {
	file, text, err := p.policyText(ctx, job)
	if err != nil {
		return err
	}
	if job.Policy, err = p.policies.read(file, text); err != nil {
		return usage.Error{Err: err}
	}
	p.otherRounds(job)
	p.staticOnly(job)
	job.Provenance.Policy = fmt.Sprintf("%x", sha256.Sum256(text))
	job.PolicyFile, job.PolicyText = file, string(text)
	return nil
}

func (p *Plan) policyText(ctx context.Context, job *runners.Job) (string, []byte, error) {
	if p.opt.Policy != "" {
		return p.namedPolicy()
	}
	text, err := p.opt.Repo.Read(ctx, cmp.Or(p.opt.PolicyAt, p.opt.Trusted), PolicyFile)
	if err == nil {
		if p.opt.PolicyAt == "" && slices.Contains(p.changed, PolicyFile) {
			job.Notes = append(job.Notes, "The change edits the policy: it is judged by the base's, and takes effect when it is merged.")
		}
		return PolicyFile, text, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("reading the policy: %w", err)
	}
	const name = "default"
	job.Notes = append(job.Notes, fmt.Sprintf("The base has no %s: the shipped policy %s is used.", PolicyFile, name))
	text, err = policies.Shipped(name)
	return name + ".yaml", text, err
}

// namedPolicy reads the policy that the options name.
func (p *Plan) namedPolicy() (string, []byte, error) {
	if p.opt.PolicyRoot != "" {
		return policyWithin(p.opt.PolicyRoot, p.opt.Policy)
	}
	return PolicyNamed(p.opt.Policy)
}

// PolicyNamed reads a policy by the name that a user gives: a file, or a shipped policy. The first
// result is the file name for messages.
func PolicyNamed(name string) (string, []byte, error) {
	shipped := strings.Join(policies.ShippedNames(), ", ")
	if name == "" {
		return "", nil, usage.Errorf("no policy was named (write --policy FILE, or one of %s)", shipped)
	}
	if slices.Contains(policies.ShippedNames(), name) {
		text, err := policies.Shipped(name)
		return name + ".yaml", text, err
	}
	f, err := os.Open(name)
	if err != nil {
		if meant := strict.Meant(name, policies.ShippedNames()); meant != "" {
			shipped = fmt.Sprintf("%s: did you mean %s?", shipped, meant)
		}
		return "", nil, usage.Errorf("reading the policy: %w (name a file, or one of %s)", err, shipped)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, strict.MaxBytes+1)) // Parse refuses longer files
	if err != nil {
		return "", nil, usage.Errorf("reading the policy: %w", err)
	}
	return name, text, nil
}

// policyWithin reads a policy that an untrusted party has named: a shipped one, or a YAML file in
// the folder. The sender of evidence must not make this host read any other file and quote its text
// in messages.
func policyWithin(folder, name string) (string, []byte, error) {
	if slices.Contains(policies.ShippedNames(), name) {
		return PolicyNamed(name)
	}
	ext := filepath.Ext(name)
	if !filepath.IsLocal(name) || ext != ".yaml" && ext != ".yml" {
		return "", nil, usage.Errorf("the evidence was judged by the policy %q, which is no YAML file of this repository and none of %s (run kernelgate check with --policy FILE, --shape, --seed and --inputs)", name, strings.Join(policies.ShippedNames(), ", "))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", nil, fmt.Errorf("opening the repository: %w", err)
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", nil, usage.Errorf("reading the policy that the evidence names: %w", err)
	}
	defer f.Close()
	text, err := results.All(f, name, strict.MaxBytes)
	if err != nil {
		return "", nil, usage.Errorf("reading the policy that the evidence names: %w", err)
	}
	return name, text, nil
}

// otherRounds sets the number of rounds of a local check if the caller gives one. It may be fewer
// or more than the policy's.
func (p *Plan) otherRounds(job *runners.Job) {
	if p.opt.Rounds == 0 {
		return
	}
	gate := job.Rule().Gates.Performance
	job.Policy, _ = job.Policy.AtMost(p.opt.Rounds)
	job.Policy, _ = job.Policy.AtLeast(p.opt.Rounds)
	switch {
	case gate == nil:
	case p.opt.Rounds > int(gate.Rounds.Max):
		job.Notes = append(job.Notes, fmt.Sprintf("The command line has raised the maximum to %d rounds.", p.opt.Rounds))
	case p.opt.Rounds < int(gate.Rounds.Max):
		job.Notes = append(job.Notes, fmt.Sprintf("At most %d rounds were allowed on the command line.", max(p.opt.Rounds, policy.MinRounds)))
	}
}

// staticOnly leaves out every gate that has to run the kernel.
func (p *Plan) staticOnly(job *runners.Job) {
	if !p.opt.Static {
		return
	}
	job.Policy = job.Policy.Static()
	job.Notes = append(job.Notes, "Only the build and its resources were judged (--static): nothing was run.")
}
