package interpreter

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
)

func none(string) string { return "" }

// A Python says where it is and what it has, in one answer.
func TestAsk(t *testing.T) {
	program, err := Program(none)
	if err != nil {
		t.Skip("there is no python3")
	}
	p, err := Ask(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if p.Executable == "" || !filepath.IsAbs(p.Real) || !strings.HasPrefix(p.Version, "3.") || !strings.HasPrefix(p.Tag, "cp3") || len(p.Sites) == 0 {
		t.Errorf("it says %+v", p)
	}
	if folders := p.Folders(); !slices.Contains(folders, p.Prefix) || !slices.Contains(folders, filepath.Dir(filepath.Dir(p.Real))) {
		t.Errorf("its folders are %v", folders)
	}
}

// The variable decides, and what is no Python is named with the reason.
func TestOtherPrograms(t *testing.T) {
	fake := filepath.Join(t.TempDir(), "python")
	if err := runnable.Write(fake, []byte("#!/bin/sh\necho no Python\n")); err != nil {
		t.Fatal(err)
	}
	program, err := Program(func(name string) string { return map[string]string{"KERNELGATE_PYTHON": fake}[name] })
	if err != nil || program != fake {
		t.Errorf("%s, %v", program, err)
	}
	if p, err := Ask(t.Context(), fake); err == nil || !strings.Contains(err.Error(), "asking "+fake+" for its packages: ") || !strings.Contains(err.Error(), "(is it Python 3?)") {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = Program(func(string) string { return "/nowhere/python3" })
	if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "there is no /nowhere/python3: ") {
		t.Error(err)
	}
}
