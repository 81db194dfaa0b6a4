package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
)

// TestDefaultHost checks that every question has an answer on any machine.
func TestDefaultHost(t *testing.T) {
	h := DefaultHost()
	for i, v := 0, reflect.ValueOf(h); i < v.NumField(); i++ {
		if v.Field(i).Kind() != reflect.Struct && v.Field(i).IsNil() {
			t.Errorf("%s is not asked", v.Type().Field(i).Name)
		}
	}
	findings := Run(t.Context(), h, nil)
	complete(t, findings)
	for _, name := range []string{"sandbox", "C compiler", "git", "temporary folder", "NVIDIA GPU", "CUDA compiler", "ncu", "compute-sanitizer"} {
		if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Name == name }) {
			t.Errorf("no finding about %s", name)
		}
	}
	t.Logf("this machine:\n%s", Text(findings, Form{Width: 80}))
}

func TestDevices(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nvidia3", "nvidiactl", "nvidia-uvm", "nvidia", "null", "nvidia12"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "nvidia0"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "nvidia12"), filepath.Join(dir, "nvidia3")}
	if got := devices(dir); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := devices(filepath.Join(dir, "absent")); got != nil {
		t.Errorf("got %v from no folder", got)
	}
}

func TestSysAdmin(t *testing.T) {
	for text, want := range map[string]bool{
		"Name:\tx\nCapInh:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n": true,
		"CapEff:\t0000000000200000\n":                                      true,
		// Docker's default
		"CapEff:\t00000000a80425fb\n": false,
		"CapEff:\t0000000000000000\n": false,
		"CapEff:\tnonsense\n":         false,
		"CapInh:\t000001ffffffffff\n": false,
	} {
		if got := sysAdmin(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	install := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := runnable.Write(path, []byte("#!/bin/sh\n"+body+"\n")); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := install("good", "echo Tool; echo Version 1.2.3 build 4")
	silent, broken := install("silent", "true"), install("broken", "exit 3")
	pattern := regexp.MustCompile(`(?m)^Version (\S+)`)
	absent := filepath.Join(dir, "absent")
	for _, tt := range []struct {
		name    string
		program string
		want    string
		err     string
	}{
		{"one that is there", good, "1.2.3", ""},
		{"none", absent, "", "not found"},
		{"no version", silent, "", "names no version"},
		{"fails", broken, "", "exit status 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := version(t.Context(), pattern, tt.program)
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := version(ctx, pattern, good); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestTemp(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	got, free, err := temp()
	if got != dir || free == 0 || err != nil {
		t.Errorf("got %s, %d, %v", got, free, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "absent"))
	if _, _, err := temp(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for a folder that is not there", err)
	}
}

func TestOthers(t *testing.T) {
	list, err := others([]nvml.Process{{PID: os.Getpid()}, {PID: -1}}, nil)
	if err != nil || len(list) != 1 || list[0].PID != -1 {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestAnswer(t *testing.T) {
	var figure *int
	if err := answer(&figure, func() (int, error) { return 7, nil }); err != nil || figure == nil || *figure != 7 {
		t.Errorf("got %v, %v", figure, err)
	}
	figure = nil
	if err := answer(&figure, func() (int, error) { return 7, &nvml.Error{Code: nvml.NotSupported} }); err != nil || figure != nil {
		t.Errorf("a figure that the GPU does not have: %v, %v", figure, err)
	}
	if err := answer(&figure, func() (int, error) { return 7, nvml.GPUIsLost }); !errors.Is(err, nvml.GPUIsLost) || figure != nil {
		t.Errorf("a GPU that is lost: %v, %v", figure, err)
	}
}
