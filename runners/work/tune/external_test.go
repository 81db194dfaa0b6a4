package tune

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/policies/usage"
)

func testState() State {
	return State{Space: testSpace(), Left: 10, Tried: []Tried{{ID: "one", Candidate: Candidate{Variant: "one"}, Status: Racing}}}
}

func isSource(file string) bool { return strings.HasSuffix(file, ".c") && filepath.IsLocal(file) }

// TestAnswers checks what a proposer may say, and that every mistake names its field.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"candidates":       {`{"candidates": [{"variant": "two", "toggles": {"ROWS": 4}}, {"variant": "one", "files": {"a.c": "x"}, "note": "why"}]}`, ""},
		"none":             {`{"candidates": []}`, ""},
		"no JSON":          {`Sure, here are some candidates`, "its answer is no JSON object with candidates: invalid character 'S' looking for beginning of value"},
		"nothing":          {`{}`, "candidates: the field is missing (write an empty list to end the search)"},
		"another field":    {`{"candidates": [], "thoughts": 1}`, `its answer is no JSON object with candidates: json: unknown field "thoughts"`},
		"two answers":      {`{"candidates": []} {"candidates": []}`, "its answer has more than one JSON object in a line"},
		"another type":     {`{"candidates": [{"variant": 3}]}`, "candidates.variant: number is no string"},
		"another variant":  {`{"candidates": [{"variant": "two"}, {"variant": "three"}]}`, `candidates[1].variant: "three" is not searched (write one of one, two)`},
		"another toggle":   {`{"candidates": [{"variant": "two", "toggles": {"COLS": 1}}]}`, "candidates[0].toggles.COLS: it is not searched (write one of FAST, ROWS, STAGES)"},
		"another value":    {`{"candidates": [{"variant": "two", "toggles": {"ROWS": 3}}]}`, "candidates[0].toggles.ROWS: 3 is none of its values [1 2 4]"},
		"the reference":    {`{"candidates": [{"variant": "two", "files": {"kernel.yaml": "x"}}]}`, `candidates[0].files: "kernel.yaml" is no source of the kernel (the manifest's sources or root say which files are)`},
		"outside":          {`{"candidates": [{"variant": "two", "files": {"../a.c": "x"}}]}`, `candidates[0].files: "../a.c" is no source of the kernel (the manifest's sources or root say which files are)`},
		"too many of them": {`{"candidates": [` + strings.Repeat(`{"variant":"one"},`, maxProposed) + `{"variant":"one"}]}`, "candidates: 10001 are too many (propose 10000 or fewer at a time)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseAnswer([]byte(c.answer), testState(), isSource)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || err.Error() != c.want):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"candidates": [{"variant": "two", "toggles": {"ROWS": 4}, "files": {"a.c": "x"}}]}`))
	f.Add([]byte(`{"candidates": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		candidates, err := parseAnswer(text, testState(), isSource)
		for _, c := range candidates {
			s := testSpace()
			if bad := s.Check(c); err == nil && bad != nil {
				t.Errorf("%q was accepted: %v", text, bad)
			}
			for file := range c.Files {
				if err == nil && !isSource(file) {
					t.Errorf("%q was accepted", file)
				}
			}
		}
	})
}

// program writes a shell script and starts it as a proposer.
func program(t *testing.T, script string) *Program {
	t.Helper()
	file := filepath.Join(t.TempDir(), "propose.sh")
	if err := runnable.Write(file, []byte("#!/bin/sh\n"+script)); err != nil {
		t.Fatal(err)
	}
	p, err := StartProgram(t.Context(), []string{file}, isSource, os.Getenv)
	if err != nil {
		t.Skip(err) // no user namespaces
	}
	t.Cleanup(p.Close)
	return p
}

// TestProgram talks to a program in its sandbox.
func TestProgram(t *testing.T) {
	p := program(t, `while read -r line; do
case $line in *'"sources":{"a.c":"int x;"}'*) echo '{"candidates": [{"variant": "two"}]}' ;; *) echo '{"candidates": []}' ;; esac
done`)
	s := testState()
	s.Sources = map[string]string{"a.c": "int x;"}
	if got, err := p.Propose(t.Context(), s); err != nil || len(got) != 1 || got[0].Variant != "two" {
		t.Errorf("first answer: %+v, %v", got, err)
	}
	s.Sources = nil
	if got, err := p.Propose(t.Context(), s); err != nil || len(got) != 0 {
		t.Errorf("second answer: %+v, %v", got, err)
	}
}

// TestProgramIsConfined checks that a proposer sees no file of the user, and no network.
func TestProgramIsConfined(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := program(t, `read -r line
if test -e `+secret+` || test "$(cat /proc/net/route 2>/dev/null | wc -l)" -gt 1; then echo '{"candidates": [{"variant": "two"}]}'; else echo '{"candidates": []}'; fi`)
	if got, err := p.Propose(t.Context(), testState()); err != nil || len(got) != 0 {
		t.Errorf("the program saw a file or a network: %+v, %v", got, err)
	}
}

// TestProgramFaults checks that a proposer that ends, hangs or talks nonsense gives one message with its
// name.
func TestProgramFaults(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"ends":     {"echo cannot go on >&2; exit 3", "propose.sh: it ended without an answer (answer each line of standard input with one line of standard output; no candidates end the search); it wrote: cannot go on"},
		"nonsense": {"read -r line; echo hello", "propose.sh: its answer is no JSON object with candidates: "},
		"hangs":    {"read -r line; read -r line; read -r line", "propose.sh: it gave no answer in 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			p := program(t, c.script)
			if name == "hangs" {
				p.timeout = 300 * time.Millisecond
			}
			_, err := p.Propose(t.Context(), testState())
			if _, bad := err.(usage.Error); !bad || !strings.Contains(err.Error(), "the proposer ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	p := program(t, "read -r line; read -r line; read -r line")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Propose(ctx, testState()); err == nil {
		t.Error("a cancelled search waits for its proposer")
	}
}
