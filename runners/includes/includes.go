// Package includes is the sets of headers that a runner has of its own, such as a
// library's, and that manifests include by name: <cutlass>. It lays them into the folders
// of a job and says what they were; it compiles nothing.
package includes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners"
)

// Sets is folders by the names that manifests know them by.
type Sets map[string]string

// Check tells the first thing that is wrong with them.
func (s Sets) Check() error {
	for _, name := range s.Names() {
		folder := s[name]
		if !kernels.IsIncludeSet(name) {
			return fmt.Errorf("%q is no name for a set of headers (write letters, digits, '.', '_', '+' and '-')", name)
		}
		if !filepath.IsAbs(folder) {
			return fmt.Errorf("the set %s: %q is no absolute path (write e.g. /opt/%s/include)", name, folder, name)
		}
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return fmt.Errorf("the set %s: there is no folder %s (install the headers, or mend the path)", name, folder)
		}
	}
	return nil
}

// Names lists them in order.
func (s Sets) Names() []string { return slices.Sorted(maps.Keys(s)) }

// LayIn puts the sets that a job's sides include into their folders, where the compiler
// sees them read-only, and says what each was, by its name in a manifest: version and
// content. Whoever runs it is the runner's name, for the message where it lacks one.
func (s Sets) LayIn(job runners.Job, runner string) (map[string]string, error) {
	sides := []runners.Side{job.Candidate}
	if job.Baseline != nil {
		sides = append(sides, *job.Baseline)
	}
	for _, side := range sides { // what the repository has there is no set of anybody's
		if err := os.RemoveAll(filepath.Join(side.Dir, kernels.SetsFolder)); err != nil {
			return nil, fmt.Errorf("making room for include sets: %w", err)
		}
	}
	were, laid := map[string]string{}, map[string]bool{}
	for _, side := range sides {
		for _, name := range job.Of(side).IncludeSets() {
			folder, ok := s[name]
			if !ok {
				return nil, s.lacks(job, name, runner)
			}
			to := filepath.Join(side.Dir, kernels.SetsFolder, name)
			if laid[to] { // both sides are built in one folder
				continue
			}
			laid[to] = true
			set, err := lay(folder, to)
			if err != nil {
				return nil, fmt.Errorf("the include set <%s> of %s: %w", name, runner, err)
			}
			if was, known := were["<"+name+">"]; known && was != set.String() {
				return nil, fmt.Errorf("the include set <%s> of %s was %s and then %s: it was changed while it was read (run it again)", name, runner, was, set)
			}
			were["<"+name+">"] = set.String()
		}
	}
	return were, nil
}

// lacks says what to add, and where.
func (s Sets) lacks(job runners.Job, name, runner string) error {
	has := "none"
	if names := s.Names(); len(names) > 0 {
		has = strings.Join(names, ", ")
	}
	return fmt.Errorf("%s includes the set <%s>, which %s does not have (it has %s): install the headers there and add --include %[2]s=FOLDER to its command, or in the bot's configuration runner: {includes: {%[2]s: FOLDER}}",
		kernels.FileOf(job.Key), name, runner, has)
}
