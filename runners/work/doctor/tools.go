package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

func sandboxFinding(c sandbox.Check) Finding {
	f := Finding{Name: c.Name, Status: OK, Detail: c.Detail}
	switch {
	case c.OK:
	case c.Needed:
		f.Status, f.Remedy = Missing, c.Remedy
	default:
		f.Status, f.Remedy = Warn, c.Remedy+"; until then code from forks is refused"
	}
	return f
}

// toolFinding reports a program or, if it is missing, how serious that is and what to do.
func toolFinding(name, version string, err error, lack Status, remedy string) Finding {
	if err != nil {
		return Finding{Name: name, Status: lack, Detail: oneLine(err), Remedy: remedy}
	}
	return Finding{Name: name, Status: OK, Detail: version}
}

func ccFinding(version string, err error) Finding {
	f := toolFinding("C compiler", version, err, Missing, "install gcc or clang (Debian: apt-get install gcc libc6-dev), or set CC to one")
	if errors.Is(err, toolchain.ErrNoCompiler) { // the error's text is the remedy
		f.Detail = "not found"
	}
	return f
}

// oldestGit is the first version whose rev-parse knows --end-of-options, which stops git from
// reading a branch's name as an option.
var oldestGit = [2]int{2, 30}

func gitFinding(version string, err error) Finding {
	f := toolFinding("git", version, err, Missing, "install git (Debian: apt-get install git)")
	if err != nil {
		return f
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		f.Status, f.Detail, f.Remedy = Warn, fmt.Sprintf("has an unknown version: %q", version), "install git from your distribution"
		return f
	}
	if major < oldestGit[0] || major == oldestGit[0] && minor < oldestGit[1] {
		f.Status, f.Remedy = Missing, fmt.Sprintf("install git %d.%d or later", oldestGit[0], oldestGit[1])
	}
	return f
}

// A run keeps two checkouts, their builds and its evidence there. Below the lower bound the first
// build fails.
const (
	leastDisk = 256 << 20
	goodDisk  = 2 << 30
)

func tempFinding(dir string, free uint64, err error) Finding {
	f := Finding{Name: "temporary folder", Status: OK, Detail: fmt.Sprintf("%s, %s free", dir, size(free))}
	const remedy = "free some space there, or set TMPDIR to a folder on a larger disk"
	switch {
	case err != nil:
		f.Status, f.Detail, f.Remedy = Missing, oneLine(err), "set TMPDIR to a folder that this user may write to"
	case free < leastDisk:
		f.Status, f.Remedy = Missing, remedy
	case free < goodDisk:
		f.Status, f.Remedy = Warn, remedy
	}
	return f
}

func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

func cudaFinding(ctx context.Context, h Host, lack Status) Finding {
	version, err := h.CUDA(ctx)
	f := toolFinding(cudaName, version, err, lack, "install the CUDA toolkit and set CUDA_HOME, or run make setup in kernelgate's source, which fetches the compiler from PyPI")
	if errors.Is(err, toolchain.ErrNoCUDA) && err.Error() == toolchain.ErrNoCUDA.Error() {
		f.Detail = "not found"
	}
	return f
}

// tritonFinding is at worst a warning: few kernels need Triton.
func tritonFinding(version string, err error) Finding {
	f := toolFinding(tritonName, version, err, Warn, "pip install triton for python3, or set KERNELGATE_PYTHON to a Python that has Triton; without Triton, kernels with compiler: triton are not built")
	if errors.Is(err, toolchain.ErrNoTriton) { // the error's text is the remedy
		f.Detail = "not found" + strings.TrimPrefix(f.Detail, toolchain.ErrNoTriton.Error())
	}
	return f
}

// pythonFinding is never amiss: a reference may be in C or CUDA.
func pythonFinding(version string, err error) Finding {
	f := toolFinding("Python references", version, err, Warn, "pip install numpy (or torch) for python3, or set KERNELGATE_PYTHON to a Python that has it; without, kernels whose reference is in Python are not judged")
	if errors.Is(err, pyref.ErrNoArrays) { // whose words are the remedy
		f.Detail = "no NumPy" + strings.TrimPrefix(f.Detail, pyref.ErrNoArrays.Error())
	}
	return f
}

func counterFinding(obstacle, remedy string) Finding {
	if obstacle != "" {
		return Finding{Name: "CPU counters", Status: Warn, Detail: obstacle, Remedy: remedy}
	}
	return Finding{Name: "CPU counters", Status: OK, Detail: "of cycles, instructions, branches, caches, page faults and context switches"}
}

func ncuFindings(ctx context.Context, h Host, gpu bool) []Finding {
	version, err := h.NCU(ctx)
	f := toolFinding("ncu", version, err, Warn, inspect.ErrNoNCU.Error()+"; until then the profile gate is skipped")
	if errors.Is(err, inspect.ErrNoNCU) { // the error's text is the remedy
		f.Detail = strings.TrimPrefix(strings.TrimSuffix(f.Detail, ": "+inspect.ErrNoNCU.Error()), "ncu was ")
	}
	findings := []Finding{f}
	if gpu && err == nil { // without a GPU there are no counters to allow
		findings = append(findings, permissionFinding(h))
	}
	return findings
}

func permissionFinding(h Host) Finding {
	f := Finding{Name: "ncu permission", Status: OK}
	params, err := h.DriverParams()
	adminOnly, known := profilingAdminOnly(params)
	switch {
	case err != nil:
		f.Status, f.Detail = Warn, "not known: "+oneLine(err)
	case !known:
		f.Status, f.Detail = Warn, "unknown: the driver does not report who may read the GPU's counters"
	case !adminOnly:
		f.Detail = "every user may read the GPU's counters"
	case h.Admin():
		f.Detail = "administrators may read the GPU's counters, and this process is one"
	default:
		f.Status, f.Detail, f.Remedy = Warn, "only administrators may read the GPU's counters", inspect.PermissionRemedy
		return f
	}
	if f.Status == Warn {
		f.Remedy = "profile something; if ncu answers ERR_NVGPUCTRPERM: " + inspect.PermissionRemedy
	}
	return f
}

// profilingAdminOnly reads the driver's parameters. The parameter has had two names.
func profilingAdminOnly(params string) (adminOnly, known bool) {
	for line := range strings.Lines(params) {
		name, value, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		switch strings.TrimSpace(name) {
		case "RmProfilingAdminOnly", "RestrictProfilingToAdminUsers":
			return strings.TrimSpace(value) != "0", true
		}
	}
	return false, false
}

func sanitizerFinding(version string, err error) Finding {
	f := toolFinding("compute-sanitizer", version, err, Warn, inspect.ErrNoSanitizer.Error()+"; until then the sanitize gate looks for nothing on the GPU")
	if errors.Is(err, inspect.ErrNoSanitizer) { // the error's text is the remedy
		f.Detail = strings.TrimPrefix(strings.TrimSuffix(f.Detail, ": "+inspect.ErrNoSanitizer.Error()), "compute-sanitizer was ")
	}
	return f
}

// compilerFindings reports every compiler that a policy can pin here, as a policy would write it.
func compilerFindings(all []toolchain.Compiler, broken error) []Finding {
	var findings []Finding
	for _, c := range all {
		f := Finding{Name: "toolchain " + c.Kind + " " + c.Version, Status: OK, Detail: fmt.Sprintf("%s, digest %s", c.Place, c.Digest)}
		if c.Err != nil {
			f.Status, f.Detail, f.Remedy = Missing, oneLine(c.Err), "let this user read all of "+c.Place
		}
		findings = append(findings, f)
	}
	if broken != nil {
		findings = append(findings, Finding{
			Name: "toolchains", Status: Missing, Detail: oneLine(broken), Remedy: "name folders of CUDA toolkits, or folders with the package triton: --toolchain FOLDER, runner.toolchains in the bot's configuration",
		})
	}
	return findings
}

// includeFinding reports a set of headers. A job that names the set fails if the set cannot be
// read.
func includeFinding(name string, sets measure.IncludeSets) Finding {
	folder := sets[name]
	f := Finding{Name: "include <" + name + ">", Status: OK}
	if err := (measure.IncludeSets{name: folder}).Check(); err != nil {
		f.Status, f.Detail, f.Remedy = Missing, oneLine(err), "install the headers, or name their folder: --include "+name+"=FOLDER, runner.includes in the bot's configuration"
		return f
	}
	set, err := measure.ReadIncludeSet(folder)
	if err != nil {
		f.Status, f.Detail, f.Remedy = Missing, fmt.Sprintf("%s: %s", folder, oneLine(err)), "let this user read the folder, and replace links that lead out of it with files"
		return f
	}
	version := cmp.Or(set.Version, "no version (neither VERSION nor git has one)")
	f.Detail = fmt.Sprintf("%s, %s, %d files, sha256 %.12s", version, folder, set.Files, set.Hash)
	return f
}
