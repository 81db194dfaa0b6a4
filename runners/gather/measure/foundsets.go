package measure

import (
	"context"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/interpreter"
)

// FoundSets returns the sets that need no configuration: the headers of the Python that KERNELGATE_PYTHON names, or of python3,
// and those of its PyTorch. A set that this host lacks is left out.
func FoundSets(ctx context.Context, getenv func(string) string) IncludeSets {
	found := IncludeSets{}
	program, err := interpreter.Program(getenv)
	if err != nil {
		return found
	}
	python, err := interpreter.Ask(ctx, program)
	if err != nil {
		return found
	}
	for name, folder := range map[string]string{manifest.TorchSet: python.TorchInclude, manifest.PythonSet: python.Include} {
		if (IncludeSets{name: folder}).Check() == nil {
			found[name] = folder
		}
	}
	return found
}

// missingFound says how a host gets the sets that it finds itself.
var missingFound = map[string]string{
	manifest.TorchSet:  "install PyTorch (pip install torch) for python3 or for the Python that KERNELGATE_PYTHON names, or add --include torch=FOLDER to its command",
	manifest.PythonSet: "install the headers of Python (python3-dev), or name a Python that has them by KERNELGATE_PYTHON",
}

// miss reports whether the job names a set that is not configured and that the host may have all the same.
func (s IncludeSets) miss(job runners.Job) bool {
	names := job.Of(job.Candidate).IncludeSets()
	if job.Baseline != nil {
		names = append(names, job.Of(*job.Baseline).IncludeSets()...)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return s[name] == "" && (name == manifest.TorchSet || name == manifest.PythonSet)
	})
}
