package runners

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// RecordingFile returns the name of a recording's file in a job's folder of recordings.
func RecordingFile(name string) string { return name + ".safetensors" }

// Recordings returns the recordings that the job's rule names. No other leaves the repository or is fetched.
func (j Job) Recordings() []manifest.Recording {
	if len(j.Manifest.Recorded) == 0 {
		return nil
	}
	gate := j.Rule().Gates.Correctness
	if gate == nil {
		return nil
	}
	var all []manifest.Recording
	for _, r := range j.Manifest.Recorded {
		if slices.Contains(gate.Distributions, distribution.Recorded) || slices.Contains(gate.Distributions, distribution.RecordedAs(r.Name)) {
			all = append(all, r)
		}
	}
	return all
}

// RecordingsOnRecord returns the same recordings as evidence stores them.
func (j Job) RecordingsOnRecord() []distribution.Recording {
	var all []distribution.Recording
	for _, r := range j.Recordings() {
		all = append(all, distribution.Recording{Name: r.Name, Shape: r.Shape, Timed: r.Vary != nil, SHA256: r.SHA256})
	}
	return all
}

// TimedKinds returns the kinds of input that a shape is timed on: those of the correctness gate, so that a kernel cannot
// distinguish a timed launch from one whose output is compared.
func (j Job) TimedKinds(shape string) []distribution.Kind {
	if gate := j.Rule().Gates.Correctness; gate != nil && len(gate.Distributions) > 0 {
		return distribution.TimedOn(gate.Distributions, j.RecordingsOnRecord(), shape)
	}
	return []distribution.Kind{distribution.Normal}
}

// ReadRecordings reads the recordings of a job from its folder. A file that does not fit the manifest is the base's
// mistake, or that of a new kernel.
func (j Job) ReadRecordings() (tensor.Recordings, error) {
	return ReadRecordings(j.Manifest, j.Recordings(), j.Recorded)
}

// ReadRecordings reads recordings from a folder.
func ReadRecordings(m *manifest.Manifest, asked []manifest.Recording, dir string) (tensor.Recordings, error) {
	all := tensor.Recordings{}
	for _, r := range asked {
		data, err := os.ReadFile(filepath.Join(dir, RecordingFile(r.Name)))
		if err != nil {
			return nil, fmt.Errorf("reading the recording %s: %w", r.Name, err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != r.SHA256 {
			return nil, fmt.Errorf("the recording %s arrived with SHA-256 %s, and the manifest says %s", r.Name, got, r.SHA256)
		}
		one, err := tensor.NewRecording(m, r, data)
		if err != nil {
			return nil, SetupErrorf("%w", err)
		}
		all[distribution.RecordedAs(r.Name)] = one
	}
	return all, nil
}
