package checkout

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// TopManifests lists the manifests in the repository's top folder. They are not kernels: the folder
// of such a kernel would be the whole repository. The planner refuses them, so that nobody believes
// that they are gated.
func (r *Repo) TopManifests(ctx context.Context, rev string) ([]string, error) {
	var found []string
	if rev == workTree {
		files, err := r.filesWorkTree(ctx, "")
		return slices.DeleteFunc(files, func(f string) bool { return !manifest.IsManifest(f) || path.Dir(f) != "." }), err
	}
	err := r.walking(ctx, func(w *walk) error {
		top, err := w.top(rev)
		if err != nil {
			return err
		}
		list, err := w.list(top, "")
		for _, n := range list {
			if n.regular() && manifest.IsManifest(n.name) {
				found = append(found, n.name)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for manifests in the top folder: %w", err)
	}
	return found, nil
}

// Kernels lists the kernels by their keys, see manifest.KeyOf, without those of TopManifests.
func (r *Repo) Kernels(ctx context.Context, rev string) ([]string, error) {
	var manifests []string
	var err error
	if rev == workTree {
		manifests, err = r.filesWorkTree(ctx, "")
		manifests = slices.DeleteFunc(manifests, func(f string) bool { return !manifest.IsManifest(f) || path.Dir(f) == "." })
	} else {
		err = r.walking(ctx, func(w *walk) error {
			top, err := w.top(rev)
			if err == nil {
				manifests, err = w.manifests(top)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("looking for kernels: %w", err)
	}
	keys := make([]string, len(manifests))
	for i, file := range manifests {
		keys[i] = manifest.KeyOf(file)
	}
	return keys, nil
}

// Named lists the files of a commit whose names match, by their paths from the top. Like kernels,
// they must not be too many.
func (r *Repo) Named(ctx context.Context, rev string, match func(name string) bool) ([]string, error) {
	var found []string
	err := r.walking(ctx, func(w *walk) error {
		top, err := w.top(rev)
		if err == nil {
			found, err = w.named(top, "", func(_, name string) bool { return match(name) }, map[string][]string{})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for files: %w", err)
	}
	return found, nil
}
