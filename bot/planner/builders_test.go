package planner

import (
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// Kernels for a GPU are compiled ahead by whoever has their compiler, and others are not: a command sees what only its host has.
func TestBuilders(t *testing.T) {
	side := func(mode manifest.Mode, by manifest.Compiler) runners.Side {
		m := &manifest.Manifest{}
		m.Mode, m.Compiler = mode, by
		return runners.Side{Manifest: m}
	}
	nvcc, triton := side(manifest.ModeCUDA, ""), side(manifest.ModeCUDA, manifest.Triton)
	command, ptx := side(manifest.ModeCUDA, manifest.Program), side(manifest.ModeCUDA, manifest.PTX)
	cpu, harness := side(manifest.ModeCPU, ""), side(manifest.ModeCommand, "")
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
