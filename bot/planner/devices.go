package planner

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// devices is those that a kernel has a run on. It is empty if one run is enough.
func (s *survey) devices(d policy.Devices) []string {
	if s.id.Kind == change.Watch {
		return d.Block // a device that only informs has no issue
	}
	return d.Each()
}

// jobOn is the job of a kernel for one device of the policy: its bundle names the device, so that a runner's evidence answers for
// that device only. The baseline may be a different one on each device; then the files are planned again.
func (s *survey) jobOn(ctx context.Context, p *plan.Plan, job runners.Job, device string) (runners.Job, error) {
	gate := job.Rule().Gates.Performance
	if s.facts.Watch == nil && (gate == nil || gate.Baseline.Kind != policy.BaselineBest) {
		job.Provenance.Label = device
		return job, nil
	}
	own, _, err := s.job(ctx, p.On(device, s.pinned(device)), job.Key)
	return own, err
}

// labels are the kinds of runners that may measure a kernel that has one run, most wanted first.
func labels(job runners.Job) []string {
	if len(job.Policy.Devices.Prefer) > 0 {
		return job.Policy.Devices.Prefer
	}
	return []string{runners.ModeOf(job.Manifest).Label}
}

// tooMany refuses a change that leads to more runs than one may have.
func (s *survey) tooMany(kernels int) error {
	if s.id.Kind.Scheduled() {
		return nil
	}
	asked, err := s.out.ReadPolicy()
	if err != nil {
		return err
	}
	each := max(1, len(s.devices(asked.Devices)))
	switch {
	case kernels*each <= maxKernels:
		return nil
	case each == 1:
		return checkout.Refused{Why: fmt.Sprintf("the change touches %d kernels (at most %d are measured for one; make several changes of it)", kernels, maxKernels)}
	}
	return checkout.Refused{Why: fmt.Sprintf("the change touches %d kernels, and the policy asks for %d devices (at most %d runs are made for one change; make several changes of it)", kernels, each, maxKernels)}
}
