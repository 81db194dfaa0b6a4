package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// TestWrite describes the program that runs the test.
func TestWrite(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var text, again bytes.Buffer
	for _, w := range []*bytes.Buffer{&text, &again} {
		if err := write(w, program, "v0.1.0"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(text.Bytes(), again.Bytes()) {
		t.Error("two runs differ")
	}
	var got document
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	main, sum := got.Metadata.Component, fmt.Sprintf("%x", sha256.Sum256(content))
	if main.PURL != "pkg:golang/github.com/kernelgate/kernelgate@v0.1.0" || len(main.Hashes) != 1 || main.Hashes[0].Content != sum {
		t.Errorf("the program is %+v, want version v0.1.0 and the hash %s", main, sum)
	}
	if want := "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go"); len(got.Components) == 0 || got.Components[0].PURL != want {
		t.Errorf("the components are %+v, want %s", got.Components, want)
	}
}

func TestReplacedModule(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1", Sum: "h1:abc="}},
	}}
	got := components(info)
	if len(got) != 2 || got[1].PURL != "pkg:golang/example.org/fork@v1.0.1" || got[1].Properties[0].Value != "h1:abc=" {
		t.Errorf("got %+v", got)
	}
}

func TestNotAProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(&bytes.Buffer{}, file, "v0.1.0"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}
