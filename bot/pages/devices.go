package pages

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
)

// A DeviceRun is one kernel on one device, of a policy that asks for a run on each of several.
type DeviceRun struct {
	Kernel  string        `json:"kernel"`
	Folder  string        `json:"folder"`
	Device  string        `json:"device"` // its label in the policy
	Informs bool          `json:"informs,omitempty"`
	Job     string        `json:"job"`
	Phase   change.Phase  `json:"phase"`
	Outcome gates.Outcome `json:"outcome,omitempty"`
	Reason  gates.Reason  `json:"reason,omitempty"`
	Found   string        `json:"found,omitempty"`   // the figure that the verdict hangs on
	Missing string        `json:"missing,omitempty"` // what stands between it and a pass
	// Result is the verdict for programs; nil before there is one.
	Result *result.Result `json:"result,omitempty"`
}

// onDevices returns the matrix of a change, kernel by kernel in the policy's order of devices.
func (s *Server) onDevices(ctx context.Context, state *change.State) []DeviceRun {
	var all []DeviceRun
	for _, r := range state.Runs {
		if r.Device == "" {
			continue
		}
		d := DeviceRun{Kernel: r.KernelName(), Folder: r.Folder, Device: r.Device, Informs: r.Informs, Job: r.Job, Phase: r.Phase}
		switch {
		case r.Result != nil:
			d.Outcome, d.Reason, d.Found = r.Result.Outcome, r.Result.Reason, brief(r.Result.Line)
			if _, found, ok := strings.Cut(r.Result.Line, " "+r.Name+": "); ok {
				d.Found = found
			}
			d.Result = s.resultOf(ctx, *r.Result)
		case r.Phase == change.Queued && !s.connected(r.Labels):
			d.Missing = "no runner with the label " + r.Device + " is connected"
		}
		if d.Result != nil && d.Outcome != gates.Pass && len(d.Result.ToPass) > 0 {
			d.Missing = strings.ReplaceAll(d.Result.ToPass[0], "`", "")
		}
		all = append(all, d)
	}
	return all
}

// resultOf reads a stored verdict; nil if it is not stored any more.
func (s *Server) resultOf(ctx context.Context, r change.Result) *result.Result {
	v := &gates.Verdict{}
	if err := s.blob(ctx, r.Verdict, func(data []byte) error { return json.Unmarshal(data, v) }); err != nil {
		return nil
	}
	return result.Of(v, nil)
}

func (s *Server) connected(labels []string) bool {
	return slices.ContainsFunc(s.Source.Runners(), func(r Runner) bool {
		return r.Here && slices.ContainsFunc(r.Labels, func(l string) bool { return slices.Contains(labels, l) })
	})
}
