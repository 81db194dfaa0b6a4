package inspect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A problemKind is a kind of problem that ncu is known to have.
type problemKind string

const (
	// The driver does not let this user read the counters.
	noPermission   problemKind = "no-permission"
	busy           problemKind = "busy"            // something else uses the counters
	noProfiler     problemKind = "no-profiler"     // ncu cannot reach the driver's profiling API
	metricsUnknown problemKind = "unknown-metrics" // requested, but not available on this GPU
	notFound       problemKind = "not-found"       // a file that ncu needs is missing
	programFailed  problemKind = "program-failed"  // the program under ncu failed
	noKernels      problemKind = "no-kernels"      // no launched kernel has the name
)

// A Problem says why there are no counters, in ncu's words, with the remedy.
type Problem struct {
	Kind   problemKind
	Detail string // ncu's message
	// Names are the metrics (metricsUnknown), or the kernels that were launched instead, if ncu
	// names them (noKernels).
	Names  []string
	Remedy string
}

// String returns one line for a reader.
func (p *Problem) String() string {
	s := "ncu: " + strings.TrimSuffix(p.Detail, ".")
	if len(p.Names) > 0 && p.Kind == noKernels {
		s += fmt.Sprintf(" (launched were %s)", strings.Join(p.Names, ", "))
	}
	return s + ": " + p.Remedy
}

// PermissionRemedy says what to do if the driver does not let this user read the counters.
const PermissionRemedy = "run as root, or allow everyone: write \"options nvidia NVreg_RestrictProfilingToAdminUsers=0\" to " +
	"/etc/modprobe.d/nvidia-profiling.conf and reboot, or give a container CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN); " +
	"until then the profile gate is skipped"

// A symptom is a pattern in a line of ncu's messages, and its meaning.
type symptom struct {
	kind   problemKind
	text   *regexp.Regexp
	remedy string
}

// symptoms are ordered by how much they explain: a lack of permission also makes the program fail
// and leaves no kernel profiled.
var symptoms = []symptom{
	{noPermission, regexp.MustCompile(`ERR_NVGPUCTRPERM`), PermissionRemedy},
	{busy, regexp.MustCompile(`(?i)driver resource was unavailable|resource is busy|HARDWARE_BUSY|already (?:under|being) profil`),
		"another tool holds the GPU's counters: stop it for the run (DCGM: dcgmi profile --pause), or profile one program at a time"},
	{busy, regexp.MustCompile(`(?i)InterprocessLock|nsight-compute-lock`),
		"another user's ncu left its lock behind: remove nsight-compute-lock from the temporary folder, or set TMPDIR to your own folder"},
	{noProfiler, regexp.MustCompile(`(?i)LibraryNotLoaded|failed to initiali[sz]e the profiler`),
		"install an Nsight Compute that knows this GPU and driver, and run outside a sandboxed container runtime such as gVisor, which has no profiling interface"},
	{noProfiler, regexp.MustCompile(`(?i)failed to connect to the CUDA driver|stub libcuda`),
		"put the driver's own libcuda.so.1 before the toolkit's stub in the library path"},
	{metricsUnknown, regexp.MustCompile(`(?i)failed to (?:find|access)\b.*\bmetrics?\b`),
		"correct the names in the policy; ncu --query-metrics lists those of this GPU"},
	{notFound, regexp.MustCompile(`(?i)(?:could not|cannot|unable to|failed to) (?:find|open)|could not be (?:found|opened)|does not exist|no such file|not an executable`),
		"check that the path is there and may be read and run by this user"},
	{programFailed, regexp.MustCompile(`(?i)the application returned an error code|target application (?:terminated|crashed)`),
		"run the program without ncu to see its own error"},
	{noKernels, regexp.MustCompile(`(?i)no kernels were profiled`),
		"check that the program launches the kernel under this name, and more often than launches are skipped"},
}

// ncuLine matches a message of ncu: ==ERROR== and similar, or ==PID== in old versions.
var ncuLine = regexp.MustCompile(`==(ERROR|WARNING|PROF|\d+)==\s*(.*)`)

// classify finds a known problem in ncu's output, or returns nil. Only ncu's own lines count.
func classify(output string) *Problem {
	var said []string // all messages of ncu, including warnings and errors
	var errors []string
	for line := range strings.Lines(output) {
		m := ncuLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		said = append(said, m[2])
		if m[1] == "ERROR" {
			errors = append(errors, m[2])
		}
	}
	for _, s := range symptoms {
		from := errors
		if s.kind == noKernels || s.kind == noPermission { // these also appear as warnings
			from = said
		}
		i := slices.IndexFunc(from, s.text.MatchString)
		if i < 0 {
			continue
		}
		p := &Problem{Kind: s.kind, Detail: from[i], Remedy: s.remedy}
		switch s.kind {
		case metricsUnknown:
			p.Names = unknownMetrics(from)
		case noKernels:
			p.Names = availableKernels(output)
		}
		return p
	}
	return nil
}

var (
	// ncu turns a name without a suffix into a pattern for all of its suffixes, and reports the
	// pattern.
	failedMetric  = regexp.MustCompile(`(?i)failed to find metric (?:regex:)?\^?([A-Za-z]\w*(?:\\?\.\w+)*)`)
	failedMetrics = regexp.MustCompile(`(?i)failed to access the following (?:\d+ )?metrics?: (.*)`)
)

func unknownMetrics(lines []string) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, line := range lines {
		if m := failedMetric.FindStringSubmatch(line); m != nil {
			add(strings.ReplaceAll(m[1], `\`, ""))
		}
		if m := failedMetrics.FindStringSubmatch(line); m != nil {
			for name := range strings.SplitSeq(m[1], ",") {
				add(strings.TrimRight(strings.TrimSpace(name), "."))
			}
		}
	}
	return names
}

var listedKernel = regexp.MustCompile(`^\s*\d+\.\s+(\S.*?)\s*$`)

func availableKernels(output string) []string {
	_, list, found := strings.Cut(output, "Available Kernels:")
	if !found {
		return nil
	}
	var names []string
	for line := range strings.Lines(strings.TrimLeft(list, "\r\n")) {
		m := listedKernel.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			break
		}
		names = append(names, m[1])
	}
	return names
}
