package change

import "github.com/kernelgate/kernelgate/gates"

// A KernelKey identifies a run of a plan: a kernel and, if the policy asks for a run on each of
// several devices, one of them. Everything that looks for a run of a change looks for its key.
type KernelKey struct {
	Folder string `json:"folder"`
	Device string `json:"device,omitempty"` // its label in the policy; empty if any one runner is enough
}

// String names the key for logs, and for places that keep a text.
func (k KernelKey) String() string { return gates.NameOn(k.Folder, k.Device) }

// Key identifies the run that a plan asks for.
func (k KernelSpec) Key() KernelKey { return KernelKey{k.Folder, k.Device} }

// Blocks reports whether the run keeps the change from being merged: its verdict does, or is not
// known yet. A run on a device that only informs never does.
func (r Run) Blocks() bool { return !r.Informs && (r.Phase != Done || r.Result.Blocks()) }

// Awaited reports whether the verdict of the change waits for the run.
func (r Run) Awaited() bool { return !r.Informs && r.Unfinished() }

// ByKey finds the run in line with a key.
func (s *State) ByKey(key KernelKey) (Run, bool) {
	if i := s.kernelIndex(key); i >= 0 {
		return s.Runs[i], true
	}
	return Run{}, false
}

// ByFolder finds the run in line of a kernel that any one runner measures.
func (s *State) ByFolder(folder string) (Run, bool) { return s.ByKey(KernelKey{Folder: folder}) }

// OfKernel returns the runs in line of a kernel: one for each device.
func (s *State) OfKernel(folder string) []Run {
	var runs []Run
	for _, r := range s.Runs {
		if r.Folder == folder {
			runs = append(runs, r)
		}
	}
	return runs
}

// Measured finds the run whose evidence may be used for what a plan asks for: the run with that key
// or, if the policy named the same device in a different way, one that the same runners measured. What
// was measured for information spent no error rate of the change, so it lets nothing pass.
func (s *State) Measured(head string, kernel KernelSpec) (Run, bool) {
	holds := func(r Run) bool { return EvidenceHolds(r, head, kernel) && (kernel.Informs || !r.Informs) }
	if r, ok := s.ByKey(kernel.Key()); ok {
		return r, holds(r)
	}
	for _, r := range s.OfKernel(kernel.Folder) {
		if holds(r) {
			return r, true
		}
	}
	return Run{}, false
}
