package planner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/checkout"
	"github.com/kernelgate/kernelgate/runners/plan"
)

// Rules is a digest of what a branch asks of kernels: its policy, manifests,
// references and harnesses, not their sources. While it stays, so does what is asked of
// a pull request to that branch. A branch that is gone is ErrMoved.
func (p *Planner) Rules(ctx context.Context, repo, branch string) (string, error) {
	mirror, err := p.Mirrors.Fetch(ctx, repo)
	if err != nil {
		return "", fmt.Errorf("reading the rules of %s: %w", repo, err)
	}
	tip, err := mirror.Resolve(ctx, "refs/heads/"+branch)
	if err != nil {
		return "", fmt.Errorf("reading the rules of %s on %s (%w): %w", repo, branch, err, ErrMoved)
	}
	return rules(ctx, mirror, tip)
}

func rules(ctx context.Context, repo *checkout.Repo, rev string) (string, error) {
	folders, err := repo.Kernels(ctx, rev)
	if err != nil {
		return "", err
	}
	files := []string{plan.PolicyFile}
	for _, folder := range folders {
		asking, err := askingFiles(ctx, repo, rev, folder)
		if err != nil {
			return "", fmt.Errorf("reading the rules at %.12s: %w", rev, err)
		}
		files = append(files, asking...)
	}
	objects, err := repo.Objects(ctx, rev, files...)
	if err != nil {
		return "", fmt.Errorf("reading the rules at %.12s: %w", rev, err)
	}
	sum := sha256.Sum256([]byte(objects))
	return hex.EncodeToString(sum[:8]), nil
}

// askingFiles is the files of a kernel that ask something of its sources.
func askingFiles(ctx context.Context, repo *checkout.Repo, rev, folder string) ([]string, error) {
	file := path.Join(folder, kernels.FileName)
	files := []string{file}
	text, err := repo.Read(ctx, rev, file)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil // a link, which is no manifest: told where a change touches the kernel
	}
	if err != nil {
		return nil, err
	}
	m, err := kernels.Parse(file, text)
	switch {
	case err != nil: // told where a change touches the kernel
	case m.Mode == kernels.ModeCommand:
		all, err := repo.Files(ctx, rev, folder)
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			if !m.IsSource(strings.TrimPrefix(name, folder+"/")) {
				files = append(files, name)
			}
		}
	case m.Reference != nil:
		name := path.Join(folder, m.Reference.Source)
		text, err := repo.Read(ctx, rev, name)
		if errors.Is(err, fs.ErrNotExist) {
			return files, nil // the build says so
		}
		if err != nil {
			return nil, err
		}
		if files = append(files, name); include.Match(text) {
			files = append(files, folder)
		}
	}
	return files, nil
}
