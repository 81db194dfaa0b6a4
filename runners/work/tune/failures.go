package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/results"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// FailuresFile is the name of the file in the folder of results.
const FailuresFile = "tune-failures.jsonl"

// Failures are candidates that ran and were refused, by machine code, launch and device. A search
// does not run them again. They hold for one problem: its reference, tolerance and shapes, and the
// policy.
type Failures struct {
	Kernel string // for people

	file    string
	problem string

	mu    sync.Mutex
	known map[[2]string]arm.Refusal
}

// A Failure is one line of the file.
type Failure struct {
	Kernel  string      `json:"kernel,omitempty"` // for people
	Problem string      `json:"problem"`
	Device  string      `json:"device"`
	Same    string      `json:"same"`      // hash of the machine code and its launch
	Name    string      `json:"candidate"` // for people
	Refusal arm.Refusal `json:"refusal"`
}

// OpenFailures reads the known failures about a problem. The file need not exist.
func OpenFailures(file, problem string) (*Failures, error) {
	f := &Failures{file: file, problem: problem, known: map[[2]string]arm.Refusal{}}
	all, err := ReadFailures(file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	for _, one := range all {
		if one.Problem == problem {
			f.known[[2]string{one.Device, one.Same}] = one.Refusal
		}
	}
	return f, err
}

// ReadFailures reads all known failures, in the order in which searches found them.
func ReadFailures(file string) ([]Failure, error) {
	text, err := results.ReadAtMost(file, maxLog)
	if err != nil {
		return nil, usage.Errorf("reading the known failures: %w", err)
	}
	var all []Failure
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it was being written when a search was killed
		}
		var one Failure
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, usage.Errorf("%s:%d: %w (delete the line, or the file: its candidates are then tried again)", file, number, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// Find returns why machine code failed on a device; nil if that is not known.
func (f *Failures) Find(device, same string) *arm.Refusal {
	if f == nil || same == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.known[[2]string{device, same}]; ok {
		return &r
	}
	return nil
}

// Add remembers a failure. It does nothing if there is no refusal.
func (f *Failures) Add(device, same, name string, why *arm.Refusal) error {
	if f == nil || why == nil || same == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[[2]string{device, same}] = *why
	line, err := json.Marshal(Failure{Kernel: f.Kernel, Problem: f.problem, Device: device, Same: same, Name: name, Refusal: *why})
	if err != nil {
		return fmt.Errorf("writing the known failures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.file), 0o755); err != nil {
		return fmt.Errorf("writing the known failures: %w", err)
	}
	file, err := os.OpenFile(f.file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err == nil {
		_, err = file.Write(append(endLine(file), append(line, '\n')...))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the known failures: %w", err)
	}
	return nil
}

// endLine ends a line that a killed search has left unfinished.
func endLine(file *os.File) []byte {
	var last [1]byte
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return nil
	}
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil || last[0] == '\n' {
		return nil
	}
	return []byte("\n")
}
