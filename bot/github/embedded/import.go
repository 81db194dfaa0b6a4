package embedded

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// Import fetches commits from a git bundle, as if the owner had pushed them. It maps each branch to
// a ref of the bundle. Branches that the map does not name stay unchanged.
func (r *Repo) Import(bundle string, branches map[string]string) error {
	at, err := filepath.Abs(bundle)
	if err != nil {
		return fmt.Errorf("import into %s: %w", r.FullName(), err)
	}
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", at}
	for _, branch := range slices.Sorted(maps.Keys(branches)) {
		args = append(args, "+"+branches[branch]+":refs/heads/"+branch)
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	err = r.writable()
	if err == nil {
		_, err = r.git.run(args...)
	}
	if err == nil {
		err = r.reconcile(r.owner)
	}
	if err != nil {
		return fmt.Errorf("import into %s: %w", r.fullName(), err)
	}
	return nil
}
