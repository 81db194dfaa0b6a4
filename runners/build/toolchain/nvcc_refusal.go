package toolchain

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// refusal returns a failed run with this memory limit in one line for people, and whether it would
// fail the same way again.
func refusal(memory int64, r sandbox.Result, log string, diagnostics []gates.Diagnostic) (summary string, final bool) {
	const cheaper = "; make the source cheaper to compile: deep templates, constexpr loops and large arrays cost most"
	if r.TimedOut || r.OutOfMemory || r.OutputTruncated || r.Signal != 0 {
		why := cmp.Or(strings.Join(r.Refused, "; "), fmt.Sprintf("it died: %s", r.Signal))
		return "the compiler was stopped: " + why + cheaper, false
	}
	allowed := fmt.Sprintf(" (with %d MiB allowed)", memory>>20)
	e := &output.CompileError{Diagnostics: diagnostics}
	summary = summarize(e, sandbox.Result{ExitCode: r.ExitCode})
	switch i := slices.IndexFunc(diagnostics, output.IsError); {
	case i >= 0 && exhausted.MatchString(diagnostics[i].Message):
		return "the compiler was stopped: " + summary + allowed + cheaper, false
	case i < 0 && exhausted.MatchString(log):
		return "the compiler was stopped: " + exhausted.FindString(log) + allowed + cheaper, false
	case i < 0 && output.LastLine(log) != "":
		summary += ": " + output.LastLine(log)
	case i < 0:
	case strings.Contains(diagnostics[i].Message, "requires separate compilation mode"):
		summary += "; a kernel must not launch kernels (dynamic parallelism): the manifest's launch is the only one"
	}
	return summary + also(r.Refused), len(r.Refused) == 0
}

// exhausted matches the compilers' messages that they got no memory, or that a part of them was
// killed for it.
var exhausted = regexp.MustCompile(`(?im)^.*(?:out of memory|memory exhausted|std::bad_alloc|died due to signal|killed signal).*$`)

// compilerLimits returns the limits of a compiler that makes device code.
func compilerLimits(ctx context.Context, memory int64, timeout time.Duration) sandbox.Limits {
	limits := sandbox.DeviceCompiler.Limits().Until(ctx).Within(timeout)
	limits.Memory = memory
	return limits
}

func (c *CUDA) memory() int64 { return cmp.Or(c.Memory, sandbox.DeviceCompiler.Limits().Memory) }

var intermediateName = regexp.MustCompile(`^/tmp/tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_`)

// diagnosticsIn names files relative to the folder of the sources, and nvcc's own without a process
// id.
func diagnosticsIn(log, dir string) []gates.Diagnostic {
	found := output.ParseDiagnostics(log)
	for i := range found {
		file := &found[i].File
		*file = intermediateName.ReplaceAllString(*file, "")
		if rel, err := filepath.Rel(dir, *file); err == nil && filepath.IsAbs(*file) && filepath.IsLocal(rel) {
			*file = rel
		} else if *file != "" {
			*file = filepath.Clean(*file)
		}
	}
	return found
}

// ofSource attributes ptxas's messages about its input to the source, if the source is PTX.
func ofSource(diagnostics []gates.Diagnostic) {
	for i := range diagnostics {
		if d := &diagnostics[i]; d.Tool == "ptxas" && d.File != "" {
			d.Tool = ""
		}
	}
}

// blames reports whether an error is in the sources. Only the front ends know these; ptxas names
// its own input.
func blames(diagnostics []gates.Diagnostic) bool {
	return slices.ContainsFunc(diagnostics, func(d gates.Diagnostic) bool {
		return output.IsError(d) && d.Tool == "" && filepath.IsLocal(d.File)
	})
}

func also(refused []string) string {
	if len(refused) == 0 {
		return ""
	}
	return " (" + strings.Join(refused, "; ") + ")"
}
