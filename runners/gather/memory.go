package gather

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A manifest in the change decides how large its arrays are. A runner that drew arrays that do not
// fit would be killed, and all its other work with it. So the memory is added up before anything is
// drawn.

// What a runner keeps of every element of an array at the same time. Numbers of 8 bytes: as drawn,
// as the kernel sees them, as the reference receives them, in the reference's own memory, what that
// is filled from, and what the reference computed. Copies in the array's own format: each side has
// memory and what that is filled from, and there is a copy of the outputs.
const (
	numbersKept = 6
	copiesKept  = 5
)

// memoryShare is the part of a host's memory that one problem may use.
const memoryShare = 0.75

// tooLarge finds shapes of a new kernel whose arrays need more memory than there is: those of the
// manifest, and the largest that may be drawn as a secret one. Shapes of the base branch were
// already measured there.
func tooLarge(j runners.Job, limit float64) []gates.Diagnostic {
	if j.Baseline != nil || runners.ModeOf(j.Manifest).OwnHarness() || j.Manifest.ReferenceOnDevice() {
		return nil
	}
	m := j.Of(j.Candidate)
	var all []gates.Diagnostic
	note := func(path []string, dims manifest.Dims) bool {
		need, err := memoryFor(j, dims)
		if err != nil || need <= limit {
			return false // a size that cannot be computed is reported when it runs
		}
		line, column := strict.PlaceOf([]byte(j.ManifestText), path...)
		all = append(all, gates.Diagnostic{
			File: manifest.FileOf(j.Key), Line: line, Column: column, Severity: "error",
			Message: fmt.Sprintf("%s: at %s the arrays and what is compared with them need %s of memory, and this runner has %s for them (make the shape smaller)", strings.Join(path, "."), dims, gibibytes(need), gibibytes(limit)),
		})
		return true
	}
	named := map[string]bool{}
	for _, s := range m.ShapesFor(j.Candidate.Variant) {
		named[s.Dims.String()] = true
		note([]string{"shapes", s.Name}, s.Dims)
	}
	gate := j.Rule().Gates
	if secret := gate.Correctness != nil && gate.Correctness.SecretCases > 0 || gate.Sanitize != nil && gate.Sanitize.SecretCases > 0; !secret {
		return all
	}
	for _, dims := range m.Sizes(j.Candidate.Variant) {
		if !named[dims.String()] && note([]string{"secret"}, dims) {
			break // one is enough
		}
	}
	return all
}

// memoryFor returns the memory that a runner needs for a problem of these dims.
func memoryFor(j runners.Job, dims manifest.Dims) (float64, error) {
	m := j.Of(j.Candidate)
	p, err := tensor.Outline(m, manifest.Shape{Dims: dims}, m.ToggleValues(j.Candidate.Variant))
	if err != nil {
		return 0, err
	}
	bytes := 0.0
	for _, a := range p.Args {
		if !a.Array() {
			continue
		}
		numbers := float64(a.Elements)
		for _, member := range a.Members {
			numbers += float64(member.Elements)
		}
		bytes += numbersKept*8*numbers + copiesKept*float64(a.Size())
	}
	return bytes, nil
}

func gibibytes(bytes float64) string { return fmt.Sprintf("%.3g GiB", bytes/(1<<30)) }

// memoryLimit returns the memory that one problem may use on this host: a share of the host's
// memory, or of this process's limit.
func memoryLimit() float64 {
	limit := math.Inf(1)
	if f, err := os.Open("/proc/meminfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && name == "MemTotal" {
				if kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64); err == nil {
					limit = kib * 1024
				}
			}
		}
	}
	// A container has its own limit. For other control groups the mount point is unknown.
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if bytes, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil {
			limit = min(limit, bytes)
		}
	}
	var space unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &space); err == nil && space.Cur != unix.RLIM_INFINITY {
		limit = min(limit, float64(space.Cur))
	}
	return memoryShare * limit
}
