package planner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/folderhash"
)

// Release returns the newest release that a commit contains. This is the tag with the highest semantic
// version, with or without a leading v; pre-releases do not count. If one of these tags is annotated, only
// annotated ones count. If no tag is a version, it is the newest annotated tag. If there is no such tag
// either, the name is empty.
//
// seen has the commits that releases had when a watch first used them. A tag that was moved since counts
// with that commit, as long as the branch contains it.
func (p *Planner) Release(ctx context.Context, repo, head string, seen map[string]string) (Release, error) {
	m, err := p.Mirrors.Fetch(ctx, repo)
	if err != nil {
		return Release{}, fmt.Errorf("reading the tags of %s: %w", repo, err)
	}
	all, err := m.Tags(ctx, head)
	if err != nil {
		return Release{}, fmt.Errorf("reading the tags of %s: %w", repo, err)
	}
	found := Release{Tag: release(all)}
	first := seen[found.Name]
	if first == "" || first == found.Commit {
		return found, nil
	}
	if base, err := m.MergeBase(ctx, first, head); err != nil || base != first {
		return found, ctx.Err() // the branch was rewritten: nobody can measure the commit of then
	}
	found.Commit, found.MovedTo = first, found.Commit
	return found, nil
}

// A Release is a tag, with the commit that it had when a watch first used it.
type Release struct {
	checkout.Tag
	MovedTo string // the commit that the tag has now, if somebody moved it
}

// versionOf returns the semantic version that a tag names, without build metadata, which has no rank. It
// returns "" for other tags. Package semver would also accept v1 and v1.2.
func versionOf(t checkout.Tag) string {
	full := "v" + strings.TrimPrefix(t.Name, "v")
	plain := strings.TrimSuffix(full, semver.Build(full))
	if !semver.IsValid(full) || semver.Prerelease(full) != "" || strings.Count(plain, ".") != 2 {
		return ""
	}
	return plain
}

// builds counts the builds of a version that a tag names: 0 or 1.
func builds(t checkout.Tag) int { return strings.Count(t.Name, "+") }

func release(all []checkout.Tag) checkout.Tag {
	light := func(t checkout.Tag) bool { return !t.Annotated }
	versions := slices.DeleteFunc(slices.Clone(all), func(t checkout.Tag) bool { return versionOf(t) == "" })
	if slices.ContainsFunc(versions, func(t checkout.Tag) bool { return t.Annotated }) {
		versions = slices.DeleteFunc(versions, light) // the project annotates its releases
	}
	if len(versions) > 0 {
		return slices.MaxFunc(versions, func(a, b checkout.Tag) int {
			// Build metadata has no rank: the plain tag counts, and then the older one.
			return cmp.Or(semver.Compare(versionOf(a), versionOf(b)), cmp.Compare(builds(b), builds(a)), b.At.Compare(a.At), strings.Compare(b.Name, a.Name))
		})
	}
	annotated := slices.DeleteFunc(slices.Clone(all), light)
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

// pinned returns the commits that kernels are compared with on a device instead of the release.
func (s *survey) pinned(device string) map[string]string {
	all := map[string]string{}
	if s.facts.Watch == nil {
		return all
	}
	for _, p := range s.facts.Watch.Pinned {
		if p.Device == device {
			all[p.Folder] = p.Base
		}
	}
	return all
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
