package planner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hmarr/codeowners"

	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// ownersFiles are where GitHub looks for code owners. The first that is there counts.
var ownersFiles = []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}

// Owners is who owns files by the CODEOWNERS of a branch: the logins of each set of
// owners that there is among them, of which one each has a say. There is none where a file
// has no owner who is a person: teams and addresses are not looked up.
func (p *Planner) Owners(ctx context.Context, repo, branch string, files []string) ([][]string, error) {
	mirror, err := p.Mirrors.Fetch(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("reading the code owners of %s: %w", repo, err)
	}
	rules, err := codeOwners(ctx, mirror, "refs/heads/"+branch)
	if err != nil {
		return nil, fmt.Errorf("reading the code owners of %s on %s: %w", repo, branch, err)
	}
	var sets [][]string
	for _, file := range files {
		rule, err := rules.Match(file) // the last one that fits
		if err != nil {
			return nil, fmt.Errorf("finding the code owners of %s: %w", file, err)
		}
		var people []string
		if rule != nil {
			for _, o := range rule.Owners {
				if o.Type == codeowners.UsernameOwner {
					people = append(people, o.Value)
				}
			}
		}
		if len(people) == 0 {
			return nil, nil
		}
		if !slices.ContainsFunc(sets, func(set []string) bool { return slices.Equal(set, people) }) {
			sets = append(sets, people)
		}
	}
	return sets, nil
}

// codeOwners reads a branch's file; nobody owns anything by one that has mistakes, since
// nobody knows whom its author meant.
func codeOwners(ctx context.Context, repo *checkout.Repo, rev string) (codeowners.Ruleset, error) {
	texts, err := repo.ReadAll(ctx, rev, ownersFiles)
	if _, large := errors.AsType[checkout.Refused](err); large {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range ownersFiles {
		text, ok := texts[name]
		if !ok {
			continue
		}
		const most = 32 << 10 // the library skips what follows a longer line
		if slices.ContainsFunc(bytes.Split(text, []byte("\n")), func(line []byte) bool { return len(line) > most }) {
			return nil, nil
		}
		rules, err := codeowners.ParseFile(bytes.NewReader(text))
		if err != nil {
			return nil, nil
		}
		return rules, nil
	}
	return nil, nil
}
