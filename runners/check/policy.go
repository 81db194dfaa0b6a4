package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
)

// policy finds what the change is judged by: the file that was named, the
// base's, or one that is shipped for this kind of kernel.
func (c *checker) policy(ctx context.Context, job *runners.Job) (string, error) {
	file, text, err := c.policyText(ctx, job)
	if err != nil {
		return "", err
	}
	if job.Policy, err = policies.Parse(file, text); err != nil {
		return "", BadInput{err}
	}
	c.fewerRounds(job)
	c.staticOnly(job)
	sum := sha256.Sum256(text)
	job.Provenance.Policy = hex.EncodeToString(sum[:])
	return file, nil
}

func (c *checker) policyText(ctx context.Context, job *runners.Job) (string, []byte, error) {
	if c.opt.Policy != "" {
		return policyNamed(c.opt.Policy)
	}
	text, err := c.repo.Read(ctx, c.base, PolicyFile)
	if err == nil {
		if slices.Contains(c.changed, PolicyFile) {
			job.Notes = append(job.Notes, "The change edits the policy: it is judged by the base's, and takes effect when it is merged.")
		}
		return PolicyFile, text, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("reading the policy: %w", err)
	}
	name := "l4"
	if job.Manifest.Mode == kernels.ModeCPU {
		name = "cpu"
	}
	job.Notes = append(job.Notes, fmt.Sprintf("The base has no %s: the shipped policy %s is used.", PolicyFile, name))
	text, err = policies.Shipped(name)
	return name + ".yaml", text, err
}

// fewerRounds bounds what a local check measures. The looks within the bound
// keep their places, so that what is decided is decided by the policy's rule.
func (c *checker) fewerRounds(job *runners.Job) {
	if c.opt.Rounds == 0 {
		return
	}
	for i := range job.Policy.Rules {
		p := job.Policy.Rules[i].Gates.Performance
		if p == nil || c.opt.Rounds >= int(p.Rounds.Max) {
			continue
		}
		p.Looks = append(slices.DeleteFunc(slices.Clone(p.Looks), func(n int) bool { return n >= c.opt.Rounds }), c.opt.Rounds)
	}
	job.Notes = append(job.Notes, fmt.Sprintf("At most %d rounds were allowed on the command line.", c.opt.Rounds))
}

// staticOnly leaves out every gate that has to run the kernel.
func (c *checker) staticOnly(job *runners.Job) {
	if !c.opt.Static {
		return
	}
	for i := range job.Policy.Rules {
		g := &job.Policy.Rules[i].Gates
		g.Correctness, g.Performance, g.Profile = nil, nil, nil
	}
	job.Notes = append(job.Notes, "Only the build and its resources were judged (--static): nothing was run.")
}

// checkShapes refuses a policy that asks for shapes which the kernel does not
// have, before anything is built.
func checkShapes(file string, job *runners.Job) error {
	rule := job.Rule()
	known := job.Manifest.ShapeNames()
	var wrong []string
	see := func(field string, s policies.Shapes) {
		for _, name := range s.Unknown(known) {
			wrong = append(wrong, fmt.Sprintf("%s: rule %s: gates.%s: %s has no shape %q (it has %s)", file, rule.Name, field, job.Manifest.Name, name, strings.Join(known, ", ")))
		}
	}
	g := rule.Gates
	if g.Correctness != nil {
		see("correctness.shapes", g.Correctness.Shapes)
	}
	if p := g.Performance; p != nil {
		if p.Target != nil {
			see("performance.target.shapes", p.Target.Shapes)
		}
		if p.Guard != nil {
			see("performance.guard.shapes", p.Guard.Shapes)
		}
	}
	if g.Profile != nil {
		see("profile.shapes", g.Profile.Shapes)
	}
	if len(wrong) > 0 {
		return badInput("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// provenance records where everything came from, and how to run it again.
func (c *checker) provenance(ctx context.Context, job *runners.Job, folder string, manifest []byte) error {
	p := &job.Provenance
	sum := sha256.Sum256(manifest)
	p.Time, p.Program, p.Manifest = c.started, c.opt.Version, hex.EncodeToString(sum[:])
	p.Repository = filepath.Base(c.repo.Dir())
	var err error
	if p.Base, err = c.repo.Describe(ctx, c.base); err != nil {
		return BadInput{err}
	}
	if p.Head, err = c.repo.Describe(ctx, c.head); err != nil {
		return BadInput{err}
	}
	if host, err := os.Hostname(); err == nil {
		p.Host = host
	}
	words := []string{"kernelgate", "check"}
	if c.opt.Variant != "" {
		p.Base.Variant, p.Head.Variant = c.opt.BaselineVariant, c.opt.Variant
		words = append(words, "--baseline-variant", c.opt.BaselineVariant, "--variant", c.opt.Variant)
	} else {
		words = append(words, "--base", p.Base.SHA)
		if !p.Head.Dirty {
			words = append(words, "--head", p.Head.SHA)
		}
	}
	if c.opt.Policy != "" {
		words = append(words, "--policy", c.opt.Policy)
	}
	for _, l := range job.Change.Labels {
		words = append(words, "--label", l)
	}
	p.Command = strings.Join(append(words, path.Base(folder)), " ")
	return nil
}
