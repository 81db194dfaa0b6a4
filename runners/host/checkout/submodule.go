package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// A Submodule is another repository within this one, at the commit that a revision names.
type Submodule struct {
	Path   string // of the submodule, from the repository's top
	Commit string // "" means its work tree
	Below  string // the requested folder in it; "" means its top
}

// NotHere means that a submodule's content is not on this machine, and says how to get it.
type NotHere struct {
	Submodule Submodule
	Why       string
}

func (n NotHere) Error() string {
	return fmt.Sprintf("the submodule %s: %s", shown(n.Submodule.Path), n.Why)
}

// Submodule finds the submodule that contains a folder at a revision, or nil if there is none.
func (r *Repo) Submodule(ctx context.Context, rev, folder string) (found *Submodule, err error) {
	if folder = withoutTop(folder); folder == "" {
		return nil, nil // the repository itself
	}
	if rev == workTree {
		return r.submoduleWorkTree(ctx, folder)
	}
	err = r.walking(ctx, func(w *walk) error {
		at, err := w.top(rev)
		if err != nil {
			return err
		}
		for way := ""; way != folder && at.folder(); {
			rest := strings.TrimPrefix(strings.TrimPrefix(folder, way), "/")
			part, _, _ := strings.Cut(rest, "/")
			var ok bool
			if at, ok, err = w.find(at, part); err != nil || !ok {
				return err
			}
			way = join(way, part)
			if at.mode == "160000" {
				found = &Submodule{Path: way, Commit: at.object, Below: strings.TrimPrefix(strings.TrimPrefix(folder, way), "/")}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for submodules at %.12s: %w", rev, err)
	}
	return found, nil
}

// submoduleWorkTree uses the index. The content is the submodule's own work tree.
func (r *Repo) submoduleWorkTree(ctx context.Context, folder string) (*Submodule, error) {
	args := []string{"ls-files", "--stage", "--full-name", "-z", "--"}
	for way := folder; way != "." && way != "/"; way = path.Dir(way) {
		args = append(args, ":(top,literal)"+way)
	}
	out, err := r.git(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("looking for submodules: %w", err)
	}
	for _, line := range split(out) {
		mode, _, _ := strings.Cut(line, " ")
		_, name, _ := strings.Cut(line, "\t")
		if mode == "160000" && (name == folder || strings.HasPrefix(folder, name+"/")) {
			return &Submodule{Path: name, Below: strings.TrimPrefix(strings.TrimPrefix(folder, name), "/")}, nil
		}
	}
	return nil, nil
}

// ExportSubmodule is Export for a folder in a submodule, as it is checked out in the work tree, or
// from the source that WithSubmodules sets. If it is not available, the error is NotHere.
func (r *Repo) ExportSubmodule(ctx context.Context, s Submodule, to string) error {
	sub, err := r.Within(ctx, s)
	if err != nil {
		return err
	}
	sub.written = r.written
	err = sub.Export(ctx, s.Commit, s.Below, to, func(string) bool { return true })
	r.written = sub.written
	return err
}

// Within returns the repository of a submodule, which has the submodule's commit.
func (r *Repo) Within(ctx context.Context, s Submodule) (*Repo, error) {
	if r.limits != nil {
		if r.modules == nil {
			return nil, NotHere{s, "submodules are not fetched here (keep the headers in the repository, or name them as a set that the runner has: include: [<name>])"}
		}
		return r.modules(ctx, s)
	}
	top, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		return nil, err
	}
	sub := &Repo{dir: filepath.Join(top, filepath.FromSlash(s.Path))}
	if own, err := sub.git(ctx, "rev-parse", "--show-toplevel"); err != nil || strings.TrimSpace(own) != sub.dir {
		return nil, NotHere{s, fmt.Sprintf("it is not checked out (run: git submodule update --init %s)", s.Path)}
	}
	if s.Commit != workTree {
		if _, err := sub.Resolve(ctx, s.Commit); err != nil {
			return nil, NotHere{s, fmt.Sprintf("it does not have the commit %.12s (run: git -C %s fetch origin %s)", s.Commit, s.Path, s.Commit)}
		}
	}
	return sub, nil
}

// WithSubmodules returns a bare repository that finds submodules with find. A commit that nobody
// has reviewed must not decide where a submodule comes from.
func (r *Repo) WithSubmodules(find func(context.Context, Submodule) (*Repo, error)) *Repo {
	with := *r
	with.modules = find
	return &with
}

// SubmoduleURL returns the address that a revision gives a submodule, or "" if it gives none. Git
// itself parses the file: any other parser could read it differently.
func (r *Repo) SubmoduleURL(ctx context.Context, rev, folder string) (string, error) {
	const file = ".gitmodules"
	if _, err := r.Read(ctx, rev, file); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return "", err
	}
	out, err := r.git(ctx, "config", "--no-includes", "--blob", rev+":"+file, "--null", "--list")
	if err != nil {
		return "", Refused{File: file, Why: fmt.Sprintf("git cannot read it (%v)", err)}
	}
	name, urls := "", map[string]string{}
	for _, line := range split(out) {
		key, value, _ := strings.Cut(line, "\n")
		of, isPath := strings.CutSuffix(key, ".path")
		if isPath && value == folder {
			name = of
		}
		if of, ok := strings.CutSuffix(key, ".url"); ok {
			urls[of] = value
		}
	}
	return urls[name], nil
}
