package planner

import (
	"testing"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners"
)

// Kernels for a GPU are compiled ahead by whoever has their compiler, and others are not: a command sees what only its host has.
func TestBuilders(t *testing.T) {
	side := func(mode kernels.Mode, by kernels.Compiler) runners.Side {
		m := &kernels.Manifest{}
		m.Mode, m.Compiler = mode, by
		return runners.Side{Manifest: m}
	}
	nvcc, triton := side(kernels.ModeCUDA, ""), side(kernels.ModeCUDA, kernels.Triton)
	command, ptx := side(kernels.ModeCUDA, kernels.Program), side(kernels.ModeCUDA, kernels.PTX)
	cpu, harness := side(kernels.ModeCPU, ""), side(kernels.ModeCommand, "")
	for _, c := range []struct {
		baseline  *runners.Side
		candidate runners.Side
		want      string
	}{
		{&nvcc, nvcc, "build-nvcc"}, {nil, nvcc, "build-nvcc"}, {&ptx, ptx, "build-nvcc"}, {&triton, triton, "build-triton"},
		{&nvcc, triton, "build-triton"}, {&triton, nvcc, "build-triton"}, {&command, nvcc, ""}, {&nvcc, command, ""}, {nil, command, ""},
		{&cpu, cpu, ""}, {&harness, harness, ""},
	} {
		if got := builders(runners.Job{Baseline: c.baseline, Candidate: c.candidate}); got != c.want {
			t.Errorf("%+v and %+v are compiled by %q, want %q", c.baseline, c.candidate, got, c.want)
		}
	}
}
