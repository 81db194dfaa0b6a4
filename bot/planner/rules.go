package planner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// Rules is a digest of what a branch asks of kernels (its policy, manifests, references
// and harnesses) and, behind a dash, of the folders that kernels are built from. While it
// stays, so does what is asked of a pull request to that branch, and what it is compared
// with. It returns the branch's commit as well. A branch that is gone is ErrBaseGone.
func (p *Planner) Rules(ctx context.Context, repo, branch string) (rules, tip string, err error) {
	mirror, err := p.Mirrors.Fetch(ctx, repo)
	if err != nil {
		return "", "", fmt.Errorf("reading the rules of %s: %w", repo, err)
	}
	tip, err = mirror.Resolve(ctx, "refs/heads/"+branch)
	if err != nil {
		return "", "", fmt.Errorf("reading the rules of %s on %s: %w", repo, branch, goneIfUnknown(err))
	}
	rules, err = p.known.rulesAt(ctx, mirror, tip)
	return rules, tip, err
}

func rules(ctx context.Context, repo *checkout.Repo, rev string) (string, error) {
	keys, err := repo.Kernels(ctx, rev)
	if err != nil {
		return "", err
	}
	manifests := make([]string, len(keys))
	for i, key := range keys {
		manifests[i] = manifest.FileOf(key)
	}
	texts, err := repo.ReadAll(ctx, rev, manifests)
	if err != nil {
		return "", fmt.Errorf("reading the rules: %w", err)
	}
	files, folders := append([]string{plan.PolicyFile}, manifests...), map[string]string{} // by the reference there
	built := []string{".gitattributes"}
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return "", fmt.Errorf("reading the rules: %w", err) // each of many manifests takes its time
		}
		folder := manifest.FolderOf(key)
		m, err := manifest.Parse(manifests[i], texts[manifests[i]])
		if built = append(built, folder); err == nil {
			built = append(built, m.Elsewhere()...)
		}
		switch {
		case err != nil: // or a link, which is no manifest: told where a change touches the kernel
		case runners.ModeOf(m).OwnHarness():
			harness, err := harnessOf(ctx, repo, rev, folder, m)
			if err != nil {
				return "", fmt.Errorf("reading the rules: %w", err)
			}
			files = append(files, harness...)
		case m.Reference != nil && m.Reference.Source != "":
			folders[path.Join(folder, m.Reference.Source)] = folder
		}
	}
	if texts, err = repo.ReadAll(ctx, rev, slices.Collect(maps.Keys(folders))); err != nil {
		return "", fmt.Errorf("reading the rules: %w", err)
	}
	for name, text := range texts {
		files = append(files, name)
		if _, alone := companionNames(name, text); !alone {
			files = append(files, folders[name]) // any of its files may be part of it
		}
	}
	digests := make([]string, 2)
	for i, names := range [][]string{files, built} {
		slices.Sort(names)
		objects, err := repo.Objects(ctx, rev, slices.Compact(names)...)
		if err != nil {
			return "", fmt.Errorf("reading the rules at %.12s: %w", rev, err)
		}
		sum := sha256.Sum256([]byte(objects))
		digests[i] = hex.EncodeToString(sum[:8])
	}
	return strings.Join(digests, "-"), nil
}

// harnessOf is the files of a kernel that measure it and that a change cannot bring.
func harnessOf(ctx context.Context, repo *checkout.Repo, rev, folder string, m *manifest.Manifest) ([]string, error) {
	all, err := repo.Files(ctx, rev, folder)
	return slices.DeleteFunc(all, func(name string) bool { return m.IsSource(strings.TrimPrefix(name, folder+"/")) }), err
}
