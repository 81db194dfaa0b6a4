package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/distribution"
)

const someDigest = "0f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

const goodRecorded = `version: 1
name: rows
mode: cpu
entry: rows
source: rows.c
arguments:
  - {name: x, dtype: f16, access: in, shape: [B, S]}
  - {name: mask, dtype: f16, access: in, shape: [S]}
  - {name: index, dtype: i32, access: in, shape: [2*B], init: 0..S-1}
  - {name: y, dtype: f16, access: out, shape: [B, S]}
reference: {source: reference.c, entry: rows_reference}
tolerance: {abs: 0.06}
shapes:
  small: {B: 2, S: 32}
  mission: {B: 4, S: 96}
recorded:
  decode:
    file: inputs/decode.safetensors
    sha256: 0f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    shape: mission
    vary: {noise: 0.1, keep: [mask], shuffle: [S]}
`

func TestRecorded(t *testing.T) {
	m := parsed(t, goodRecorded)
	want := []distribution.Recording{{Name: "decode", Shape: "mission", Timed: true, SHA256: someDigest}}
	if diff := cmp.Diff(want, m.OnRecord()); diff != "" {
		t.Error(diff)
	}
	if got := m.ShuffledAxes(m.Recorded[0].Vary, "x"); !cmp.Equal(got, []string{"", "S"}) {
		t.Errorf("the axes of x that are shuffled: %q", got)
	}
	for file, is := range map[string]bool{"inputs/decode.safetensors": true, "INPUTS/decode.safetensors": true, "rows.c": false} {
		if m.HoldsRecording(file) != is {
			t.Errorf("%s: taken for a recording: %v", file, !is)
		}
	}
	// No glob makes a recording a source that a change could replace.
	globs := parsed(t, edited(t, goodRecorded, "source: rows.c\n", "source: rows.c\nsources: ['**']\n"))
	if globs.IsSource("inputs/decode.safetensors") || !globs.IsSource("rows.c") {
		t.Error("a change may bring the recording")
	}
}

func TestMistakesInRecordings(t *testing.T) {
	for _, e := range []struct{ old, new, want string }{
		{"  decode:", "  de/code:", `recorded.de/code: "de/code" is not a name (write up to 64 letters, digits, '.', '_' and '-')`},
		{"shape: mission", "shape: large", `recorded.decode.shape: "large" is none of the shapes (write one of small, mission)`},
		{"0f86", "0F86", `is no SHA-256 (write the 64 hex digits that sha256sum prints)`},
		{"inputs/decode.safetensors", "../decode.safetensors", `recorded.decode.file: "../decode.safetensors" is not a file within the kernel's folder (write e.g. inputs/decode.safetensors, or an https address)`},
		{"inputs/decode.safetensors", "http://example.com/a", `recorded.decode.file: is not an https address without user and fragment (write e.g. https://example.com/decode.safetensors)`},
		{"inputs/decode.safetensors", "https://user:secret@example.com/a", `recorded.decode.file: is not an https address`},
		{"inputs/decode.safetensors", "reference.c", `recorded.decode.file: "reference.c" is the reference too (name a different file)`},
		{"inputs/decode.safetensors", "rows.c", `recorded.decode.file: "rows.c" is the source of the variant default too (name a different file)`},
		{"noise: 0.1", "noise: 0.001", `recorded.decode.vary.noise: 0.001 is not from 0.01 to 0.5 (write e.g. 0.1)`},
		{"noise: 0.1", "noise: .nan", `recorded.decode.vary.noise`},
		{"noise: 0.1, ", "", `recorded.decode.vary.noise: is required`},
		{"keep: [mask]", "keep: [y]", `recorded.decode.vary.keep[0]: "y" is no input (write one of x, mask, index)`},
		{"keep: [mask]", "keep: [x, mask]", `recorded.decode.vary: varies no input: none has real numbers without being kept (delete vary, and nothing is timed on the recording)`},
		{"shuffle: [S]", "shuffle: [Q]", `recorded.decode.vary.shuffle[0]: "Q" is no dim (write one of B, S)`},
		{"shuffle: [S]", "shuffle: [B]", `recorded.decode.vary.shuffle[0]: the axis "2*B" of index depends on B, which orders its entries in a way that is not known (delete B)`},
		{"    shape: mission\n", "    shape: mission\n    missing: ignore\n", `recorded.decode.missing: "ignore" is not one of error, draw`},
	} {
		_, err := Parse("kernel.yaml", []byte(edited(t, goodRecorded, e.old, e.new)))
		if err == nil || !strings.Contains(err.Error(), e.want) {
			t.Errorf("%s → %s: %v, want %s", e.old, e.new, err, e.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is quoted: %v", err)
		}
	}
	_, err := Parse("kernel.yaml", []byte(goodCommand+"recorded: {a: {file: a.st, sha256: "+someDigest+", shape: one}}\n"))
	if err == nil || !strings.Contains(err.Error(), "recorded: is not read in command mode") {
		t.Errorf("command mode: %v", err)
	}
}
