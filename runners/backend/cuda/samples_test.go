package cuda

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// The places with most samples are kept, with the line that each comes from; a line has the samples of all of its instructions.
func TestSamplesByLine(t *testing.T) {
	s := inspect.Sampled{Kernel: "k"}
	source := map[int]toolchain.SourceLine{}
	for i := range 20 {
		s.Instructions = append(s.Instructions, inspect.Sample{At: 16 * i, Text: "FFMA", Samples: 1 + i, Reason: []string{"wait", "long_sb"}[i%2]})
		s.All += 1 + i
		if i < 18 {
			source[16*i] = toolchain.SourceLine{File: "k.py", Line: 1 + i/2}
		}
	}
	var got gates.Counted
	addSamples(&got, s, source)
	if got.Samples != 210 || len(got.Lines) != gates.MaxStalledLines || len(got.Instructions) != gates.MaxStalledLines {
		t.Fatalf("%d samples, %d lines, %d instructions", got.Samples, len(got.Lines), len(got.Instructions))
	}
	want := gates.Counted{
		Lines:        []gates.StalledLine{{File: "k.py", Line: 9, Samples: 35, Reason: "long_sb"}},
		Instructions: []gates.StalledInstruction{{At: 304, Text: "FFMA", Samples: 20, Reason: "long_sb"}, {At: 288, Text: "FFMA", Samples: 19, Reason: "wait"}, {At: 272, Text: "FFMA", File: "k.py", Line: 9, Samples: 18, Reason: "long_sb"}},
	}
	if diff := cmp.Diff(want, gates.Counted{Lines: got.Lines[:1], Instructions: got.Instructions[:3]}); diff != "" {
		t.Error(diff)
	}
	var bare gates.Counted
	addSamples(&bare, s, nil)
	if len(bare.Lines) != 0 || len(bare.Instructions) == 0 {
		t.Errorf("without lines: %+v", bare)
	}
}
