package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
)

// script installs a program that prints a text and ends with a status.
func script(t *testing.T, path, text, status string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runnable.Write(path, []byte("#!/bin/sh\ncat <<'END'\n"+text+"\nEND\nexit "+status+"\n")); err != nil {
		t.Fatal(err)
	}
	return path
}

func versionText(v string) string {
	return "NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025 NVIDIA Corporation\nVersion " + v + " (build 36398880) (public-release)"
}

func TestFindNCU(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, root string) (env map[string]string, path string)
		version string
	}{
		{"on PATH before all else", func(t *testing.T, root string) (map[string]string, string) {
			script(t, filepath.Join(root, "opt/nvidia/nsight-compute/2025.3.1/ncu"), versionText("2025.3.1.0"), "0")
			path := script(t, filepath.Join(root, "bin/ncu"), versionText("2024.1.0.0"), "0")
			return map[string]string{"PATH": "relative:" + filepath.Join(root, "empty") + ":" + filepath.Join(root, "bin")}, path
		}, "2024.1.0.0"},
		{"in CUDA_HOME", func(t *testing.T, root string) (map[string]string, string) {
			path := script(t, filepath.Join(root, "toolkit/bin/ncu"), versionText("2025.1.0.0"), "0")
			return map[string]string{"CUDA_HOME": filepath.Join(root, "toolkit")}, path
		}, "2025.1.0.0"},
		{"in /usr/local/cuda", func(t *testing.T, root string) (map[string]string, string) {
			return nil, script(t, filepath.Join(root, "usr/local/cuda/bin/ncu"), versionText("2025.2.0.0"), "0")
		}, "2025.2.0.0"},
		{"the newest in /opt", func(t *testing.T, root string) (map[string]string, string) {
			script(t, filepath.Join(root, "opt/nvidia/nsight-compute/2025.9.1/ncu"), versionText("2025.9.1.0"), "0")
			script(t, filepath.Join(root, "opt/nvidia/nsight-compute/2024.12.0/ncu"), versionText("2024.12.0.0"), "0")
			return nil, script(t, filepath.Join(root, "opt/nvidia/nsight-compute/2025.10.0/ncu"), versionText("2025.10.0.0"), "0")
		}, "2025.10.0.0"},
		{"past one of another make and a broken one", func(t *testing.T, root string) (map[string]string, string) {
			script(t, filepath.Join(root, "npm/ncu"), "17.1.3", "0")
			script(t, filepath.Join(root, "usr/local/cuda/bin/ncu"), "ERROR: ncu not found", "1")
			path := script(t, filepath.Join(root, "opt/nvidia/nsight-compute/2025.3.1/ncu"), versionText("2025.3.1.0"), "0")
			return map[string]string{"PATH": filepath.Join(root, "npm")}, path
		}, "2025.3.1.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			env, path := tt.prepare(t, root)
			got, err := findNCU(t.Context(), func(k string) string { return env[k] }, root)
			if err != nil {
				t.Fatal(err)
			}
			if want := (NCU{Path: path, Version: tt.version}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestFindNothing(t *testing.T) {
	none := func(string) string { return "" }
	if _, err := findNCU(t.Context(), none, t.TempDir()); !errors.Is(err, ErrNoNCU) {
		t.Errorf("without one: %v", err)
	}

	root := t.TempDir()
	other := script(t, filepath.Join(root, "npm/ncu"), "17.1.3", "0")
	_, err := findNCU(t.Context(), func(k string) string { return map[string]string{"PATH": filepath.Dir(other)}[k] }, root)
	if !errors.Is(err, ErrNoNCU) || !strings.Contains(err.Error(), other+" is not Nsight Compute") {
		t.Errorf("with another program of the name: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	script(t, filepath.Join(root, "usr/local/cuda/bin/ncu"), versionText("1"), "0")
	if _, err := findNCU(ctx, none, root); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
