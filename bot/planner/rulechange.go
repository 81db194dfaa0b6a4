package planner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// What a plan keeps of a change of the rules.
const (
	maxDifferences = 100
	maxDifference  = 300 // bytes of each side
)

// wholeFile is the path of a difference that is about all of a file.
const wholeFile = "(the file)"

// ruleChange finds what the change would do to the rules of the base branch: to those that
// are there, since a branch without a policy asks nothing, and a kernel that is new
// loosens nothing.
func (s *survey) ruleChange(ctx context.Context, changed []string) error {
	if s.out.NoPolicy || s.id.Kind.OnMain() {
		return nil
	}
	var found []change.RuleDifference
	note := func(file string, list compare.List) {
		for _, d := range list {
			found = append(found, change.RuleDifference{File: file, Difference: d})
		}
	}
	list, err := s.policyChange(ctx, changed)
	if err != nil {
		return err
	}
	note(plan.PolicyFile, list)
	keys, err := s.repo.Kernels(ctx, s.trusted)
	if err != nil {
		return err
	}
	for _, key := range keys {
		manifest := manifest.FileOf(key)
		if list, err = s.manifestChange(ctx, changed, manifest); err != nil {
			return err
		}
		note(manifest, list)
		files, err := s.judgedBy(ctx, changed, key)
		if err != nil {
			return err
		}
		for _, file := range files {
			if list, err = s.fileChange(ctx, file); err != nil {
				return err
			}
			note(file, list)
		}
	}
	s.out.RuleChange = bounded(found)
	return nil
}

// bounded is the part of it that a plan keeps, worst first; nil where there is nothing.
func bounded(found []change.RuleDifference) *change.RuleChange {
	if len(found) == 0 {
		return nil
	}
	rank := []compare.Direction{compare.Loosens, compare.Changes, compare.Tightens}
	slices.SortStableFunc(found, func(a, b change.RuleDifference) int {
		return slices.Index(rank, a.Direction) - slices.Index(rank, b.Direction)
	})
	r := &change.RuleChange{Loosens: found[0].Direction != compare.Tightens, More: max(0, len(found)-maxDifferences)}
	h := sha256.New()
	for _, d := range found {
		if d.Direction != compare.Tightens && !slices.Contains(r.Files, d.File) {
			r.Files = append(r.Files, d.File)
		}
		fmt.Fprintf(h, "%q\n", []string{d.File, d.Path, d.Old, d.New, string(d.Direction)})
	}
	if len(r.Files) > maxDifferences {
		r.Files = nil
	}
	r.Digest = hex.EncodeToString(h.Sum(nil)[:16])
	for _, d := range found[:len(found)-r.More] {
		d.Difference = d.Clipped(maxDifference)
		r.Differences = append(r.Differences, d)
	}
	return r
}

// policyChange compares the base's policy with the one that it would have.
func (s *survey) policyChange(ctx context.Context, changed []string) (compare.List, error) {
	old, is, err := s.merged(ctx, changed, plan.PolicyFile)
	if err != nil || bytes.Equal(old, is) {
		return nil, err
	}
	was, err := s.planner.known.policy(plan.PolicyFile, old)
	if err != nil {
		return nil, err // it was read a moment ago
	}
	var list compare.List
	if is == nil {
		list.Add(wholeFile, "a policy", compare.None, compare.Loosens)
		return list, nil
	}
	edited, err := s.planner.known.policy(plan.PolicyFile, is)
	if err != nil {
		list.Add(wholeFile, "a policy", mistaken(err), compare.Changes)
		return list, nil
	}
	s.out.NewPolicy, s.out.NewText = edited, string(is)
	return policy.Compare(was, edited), nil
}

func (s *survey) manifestChange(ctx context.Context, changed []string, file string) (compare.List, error) {
	old, is, err := s.merged(ctx, changed, file)
	var list compare.List
	if err == nil && old == nil && slices.Contains(changed, file) {
		// The base branch has a link or a submodule in its place. What a change puts there is not a
		// new manifest, but what the base branch was meant to have.
		if is, err = s.text(ctx, s.facts.Head, file); err == nil && is != nil {
			list.Add(wholeFile, "no regular file", "a manifest, "+content(is), compare.Changes)
		}
		return list, err
	}
	if err != nil || bytes.Equal(old, is) {
		return nil, err
	}
	if is == nil {
		list.Add(wholeFile, "a manifest", compare.None, compare.Loosens)
		return list, nil
	}
	was, errWas := manifest.Parse(file, old)
	edited, errIs := manifest.Parse(file, is)
	switch {
	case errIs != nil:
		list.Add(wholeFile, "a manifest", mistaken(errIs), compare.Changes)
	case errWas != nil:
		list.Add(wholeFile, mistaken(errWas), "a manifest, "+content(is), compare.Changes)
	default:
		list = manifest.Compare(was, edited, s.comparedWith()...)
	}
	return list, nil
}

// comparedWith is the variants that the base's policy compares with: to make one of them
// slower is to ask for less.
func (s *survey) comparedWith() []string {
	pol, err := s.out.ReadPolicy()
	if err != nil {
		return nil // told where it is read
	}
	var names []string
	for _, r := range pol.Rules {
		if gate := r.Gates.Performance; gate != nil && gate.Baseline.Kind == policy.BaselineVariant && !slices.Contains(names, gate.Baseline.Name) {
			names = append(names, gate.Baseline.Name)
		}
	}
	return names
}

func mistaken(err error) string {
	var all strict.Problems
	if errors.As(err, &all) && len(all) > 0 {
		return "mistakes: " + all[0].Text()
	}
	return "mistakes"
}

// fileChange is of a file that is no text of ours to read.
func (s *survey) fileChange(ctx context.Context, file string) (compare.List, error) {
	old, is, err := s.merged(ctx, []string{file}, file)
	if err == nil && old == nil { // whether it is there may decide as well
		is, err = s.text(ctx, s.facts.Head, file)
	}
	if err != nil || bytes.Equal(old, is) && (old == nil) == (is == nil) {
		return nil, err
	}
	var list compare.List
	list.Add("(what kernels are judged by)", content(old), content(is), compare.Changes)
	return list, nil
}

// content identifies a text that is not compared line by line.
func content(text []byte) string {
	if text == nil {
		return compare.None
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d bytes, sha256 %s", len(text), hex.EncodeToString(sum[:6]))
}

// merged is a file of the base branch, and what it would be with this change. The head
// may have left the base long ago: what the base has changed since is not this change's
// doing, and where both have, git's own way to merge them says what comes of it. A file
// that is not there is nil; one that the base branch does not have is not asked for.
func (s *survey) merged(ctx context.Context, changed []string, file string) (old, is []byte, err error) {
	if !slices.Contains(changed, file) {
		return nil, nil, nil
	}
	ours, err := s.text(ctx, s.trusted, file)
	if err != nil || ours == nil {
		return nil, nil, err
	}
	base, err := s.text(ctx, s.base, file)
	if err != nil {
		return nil, nil, err
	}
	theirs, err := s.text(ctx, s.facts.Head, file)
	if err != nil || theirs == nil || base == nil || bytes.Equal(base, ours) || bytes.Equal(theirs, ours) {
		return ours, theirs, err
	}
	both, clean, err := s.repo.Merge(ctx, base, ours, theirs)
	if err != nil {
		return nil, nil, err
	}
	if !clean {
		return ours, theirs, nil // nobody can merge it as it is: the worst of it
	}
	return ours, both, nil
}

// text is a regular file's at a revision; nil where there is none.
func (s *survey) text(ctx context.Context, rev, file string) ([]byte, error) {
	text, err := s.repo.Read(ctx, rev, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}

// judgedBy is the changed files beside the manifest that a kernel of the base branch is
// judged by: the reference with what it includes, or the harness.
func (s *survey) judgedBy(ctx context.Context, changed []string, key string) ([]string, error) {
	file, folder := manifest.FileOf(key), manifest.FolderOf(key)
	if !slices.ContainsFunc(changed, func(name string) bool { return strings.HasPrefix(name, folder+"/") }) {
		return nil, nil
	}
	text, err := s.text(ctx, s.trusted, file)
	if err != nil || text == nil {
		return nil, err
	}
	m, err := s.planner.known.manifest(file, text)
	if err != nil { // the change may repair it, and is judged by what it makes of it
		if text, err = s.text(ctx, s.facts.Head, file); err != nil || text == nil {
			return nil, err
		}
		if m, err = s.planner.known.manifest(file, text); err != nil {
			return nil, nil // told where the kernel is planned
		}
	}
	var files []string
	switch {
	case runners.ModeOf(m).OwnHarness():
		files, err = harnessOf(ctx, s.repo, s.trusted, folder, m)
		files = slices.DeleteFunc(files, func(name string) bool { return manifest.IsManifest(name) })
	case m.Reference != nil && m.Reference.Source != "":
		files, err = s.including(ctx, folder, path.Join(folder, m.Reference.Source))
	}
	return slices.DeleteFunc(files, func(name string) bool { return !slices.Contains(changed, name) }), err
}

// including is a file and those beside it that it includes or asks for, and they in turn.
// Where that is not plain to see, it may be any of the folder.
func (s *survey) including(ctx context.Context, folder, file string) ([]string, error) {
	all := []string{file}
	for i := 0; i < len(all); i++ {
		text, err := s.text(ctx, s.trusted, all[i])
		if err != nil {
			return nil, err
		}
		names, alone := companionNames(all[i], text)
		if len(names) == 0 && !alone {
			return s.repo.Files(ctx, s.trusted, folder)
		}
		for _, name := range names {
			for _, from := range []string{path.Dir(all[i]), folder} {
				if beside := path.Join(from, name); !slices.Contains(all, beside) && strings.HasPrefix(beside, folder+"/") {
					all = append(all, beside)
				}
			}
		}
	}
	return all, nil
}
