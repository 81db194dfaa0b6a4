package planner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/checkout"
	"github.com/kernelgate/kernelgate/runners/folderhash"
)

// Release returns the newest release that a commit contains. This is the tag with the highest semantic
// version, with or without a leading v; pre-releases do not count. If no tag is a version, it is the newest
// annotated tag. If there is no such tag either, the name is empty.
func (p *Planner) Release(ctx context.Context, repo, head string) (checkout.Tag, error) {
	mirror, err := p.Mirrors.Fetch(ctx, repo)
	if err != nil {
		return checkout.Tag{}, fmt.Errorf("reading the tags of %s: %w", repo, err)
	}
	all, err := mirror.Tags(ctx, head)
	if err != nil {
		return checkout.Tag{}, fmt.Errorf("reading the tags of %s: %w", repo, err)
	}
	return release(all), nil
}

// released matches the names of tags that are versions of releases. Package semver would also accept v1 and
// v1.2.
var released = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)(?:\+[0-9A-Za-z.-]+)?$`)

func release(all []checkout.Tag) checkout.Tag {
	version := func(t checkout.Tag) string {
		if m := released.FindStringSubmatch(t.Name); m != nil && semver.IsValid("v"+m[1]) {
			return "v" + m[1]
		}
		return ""
	}
	versions := slices.DeleteFunc(slices.Clone(all), func(t checkout.Tag) bool { return version(t) == "" })
	if len(versions) > 0 {
		return slices.MaxFunc(versions, func(a, b checkout.Tag) int {
			return cmp.Or(semver.Compare(version(a), version(b)), strings.Compare(a.Name, b.Name))
		})
	}
	annotated := slices.DeleteFunc(slices.Clone(all), func(t checkout.Tag) bool { return !t.Annotated })
	if len(annotated) == 0 {
		return checkout.Tag{}
	}
	return slices.MaxFunc(annotated, func(a, b checkout.Tag) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Name, b.Name)) })
}

// watchBaseline returns the baseline of a watch. The policy's own baseline is for pull requests.
func (s *survey) watchBaseline() *policy.Baseline {
	if s.facts.Watch.Against == watch.Best {
		return &policy.Baseline{Kind: policy.BaselineBest}
	}
	return &policy.Baseline{Kind: "base"}
}

// headSources returns the digest of the sources and the build recipe of the head's kernel, without the
// baseline.
func headSources(job runners.Job) (string, error) {
	h := sha256.New()
	m := job.Of(job.Candidate)
	fmt.Fprintf(h, "%q %q\n", job.Candidate.Variant, m.Recipe(job.Candidate.Variant))
	built := func(rel string) bool {
		first, _, _ := strings.Cut(rel, "/")
		return first == manifest.RepositoryFolder || m.IsSource(rel)
	}
	if err := folderhash.Write(h, job.Candidate.Dir, built); err != nil {
		return "", fmt.Errorf("reading the sources of %s: %w", job.Manifest.Name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
