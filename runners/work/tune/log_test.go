package tune

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogMistakes checks that a broken log is refused with its file and line.
func TestLogMistakes(t *testing.T) {
	const header = `{"search":{"version":1,"space":{"variants":["one"],"toggles":[{"name":"A","values":[1]}]},"shapes":["s"],"epsilon":0.01,"candidates":3,"max_rounds":5}}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "x.jsonl: the log is empty"},
		"no header":       {`{"check":{"id":"one"}}` + "\n", "x.jsonl:1: search: the first line, and no other, says what is searched"},
		"two headers":     {header + header, "x.jsonl:2: search: the first line, and no other"},
		"not JSON":        {header + "nonsense\n", "x.jsonl:2: invalid character"},
		"null":            {header + "null\n", "x.jsonl:2: the line has no known field"},
		"another version": {strings.Replace(header, `"version":1`, `"version":2`, 1), "x.jsonl:1: search.version: 2 is not 1"},
		"no variants":     {strings.Replace(header, `"one"`, ``, 1), "x.jsonl:1: search.space.variants: there are none"},
		"no values":       {strings.Replace(header, `[1]`, `[]`, 1), "x.jsonl:1: search.space.toggles: one has no values"},
		"no shapes":       {strings.Replace(header, `["s"]`, `[]`, 1), "x.jsonl:1: search.shapes: there are none"},
		"no epsilon":      {strings.Replace(header, `0.01`, `0`, 1), "x.jsonl:1: search.epsilon: 0 is no share"},
		"a foreign point": {header + `{"proposal":[{"variant":"two"}]}` + "\n", `x.jsonl:2: proposal: variant: "two" is not searched`},
		"a wrong round":   {header + `{"round":{"id":"one","round":-1}}` + "\n", "x.jsonl:2: round.round: -1 is no number of a round"},
		"many rounds":     {strings.Replace(header, `"max_rounds":5`, `"max_rounds":50000`, 1), "x.jsonl:1: search: 3 candidates and 50000 rounds are out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := parseLog("x.jsonl", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, whole, err := parseLog("x.jsonl", []byte(header+`{"check":{"i`)); err != nil || whole != len(header) {
		t.Errorf("a torn line: %d whole bytes, %v", whole, err)
	}
}

// TestLogIsNotOverwritten checks that a folder has one search.
func TestLogIsNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	l, err := CreateLog(dir, testHeader("grid"))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := CreateLog(dir, testHeader("grid")); err == nil || !strings.Contains(err.Error(), "has a search already") {
		t.Errorf("a second search began in the same folder: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, LogFile)); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the log has %q (%v)", text, err)
	}
}

// FuzzLog checks that no log makes the reader, or a replay of what it reads, panic.
func FuzzLog(f *testing.F) {
	dir := f.TempDir()
	log, err := CreateLog(dir, testHeader("local"))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := newSearch(f, log, newFakeLab(testSpace(), testSpeed)).Run(f.Context()); err != nil {
		f.Fatal(err)
	}
	log.Close()
	text, err := os.ReadFile(filepath.Join(dir, LogFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[:4000])
	f.Add([]byte(`{"search":{"version":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		log, whole, err := parseLog("x.jsonl", text)
		if err != nil {
			return
		}
		if whole > len(text) {
			t.Errorf("%d of %d bytes are whole", whole, len(text))
		}
		if log.Header.Space.Size() > 1000 || log.Header.MaxRounds > 100 {
			return
		}
		replay := NewReplay(log)
		if r, err := newSearch(t, MemoryLog(replay.Header("local", 1)), replay).Run(t.Context()); err == nil {
			r.Report(ReportOptions{})
		}
	})
}
