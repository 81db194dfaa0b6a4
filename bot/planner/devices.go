package planner

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// devices is those that a kernel has a run on. It is empty if one run is enough.
func (s *survey) devices(d policy.Devices) []string {
	if s.id.Kind == change.Watch && len(d.Block) > 0 {
		return d.Block[:1] // a watched kernel has one level and one issue
	}
	return d.Each()
}

// onEach has a run of a kernel on each device. Every run has a bundle that names its device, so that a runner's evidence
// answers for that device only.
func (s *survey) onEach(ctx context.Context, job runners.Job, k change.Kernel) (all []change.Kernel, err error) {
	each := s.devices(job.Policy.Devices)
	if len(each) == 0 {
		k.Bundle, err = s.planner.pack(ctx, job)
		return []change.Kernel{k}, err
	}
	for _, device := range each {
		run := k
		run.Name, run.Device, run.Labels, run.Informs = gates.NameOn(k.Name, device), device, []string{device}, job.Policy.Devices.Informs(device)
		if run.Bundle, err = s.planner.pack(ctx, onDevice(job, device)); err != nil {
			return nil, err
		}
		all = append(all, run)
	}
	return all, nil
}

// onDevice is a job for a device of the policy; "" is a job for any runner.
func onDevice(job runners.Job, device string) runners.Job {
	job.Provenance.Label = device
	return job
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
