package toolchain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// sassOf is a kernel as nvdisasm prints it. A word with a colon is a label; each other word is an instruction, and the number after a
// slash its line of the source.
func sassOf(words string) string {
	var b strings.Builder
	b.WriteString("\t.section\t.text.k,\"ax\",@progbits\n")
	at := 0
	for word := range strings.FieldsSeq(words) {
		said, line, _ := strings.Cut(word, "/")
		switch label, to, branch := strings.Cut(said, ">"); {
		case strings.HasSuffix(said, ":"):
			fmt.Fprintf(&b, "%s\n", said)
		case branch:
			fmt.Fprintf(&b, "        /*%04x*/              @P0 %s `(%s) ;\n", at, label, to)
			at += 16
		default:
			if line != "" {
				fmt.Fprintf(&b, "\t//## File \"/a/k.cu\", line %s\n", line)
			}
			fmt.Fprintf(&b, "        /*%04x*/                   %s R1, R2 ;\n", at, said)
			at += 16
		}
	}
	return b.String()
}

// A loop is where a branch goes backward. Without samples, the loop with most work counts, and no loop that only waits.
func TestHottestLoop(t *testing.T) {
	const (
		nested  = "MOV .L_x_0: IADD LDG .L_x_1: HMMA LDS HMMA BRA>.L_x_1 STG BRA>.L_x_0 EXIT"
		waiting = "MOV .L_x_0: LDS HMMA HMMA .L_x_1: SYNCS BRA>.L_x_1 HMMA BRA>.L_x_0 EXIT .L_x_9: BRA>.L_x_9"
		forward = "MOV BRA>.L_x_0 LDG .L_x_0: EXIT"
	)
	for name, c := range map[string]struct {
		code        string
		samples     map[int]int
		first, last int // 0: no loop
	}{
		"the inner loop":         {code: nested, first: 4, last: 7},
		"no loop that waits":     {code: waiting, first: 2, last: 8},
		"a branch forward":       {code: forward},
		"padding does not count": {code: "NOP .L_x_0: NOP LDG NOP BRA>.L_x_0", first: 1, last: 2},
		"sampled outside":        {code: nested, samples: map[int]int{0x10: 90, 0x20: 10, 0x40: 5}, first: 2, last: 9},
		"sampled within":         {code: nested, samples: map[int]int{0x30: 90, 0x20: 30}, first: 4, last: 7},
		"sampled in no loop":     {code: nested, samples: map[int]int{0x0: 90}, first: 4, last: 7},
		"sampled where it waits": {code: waiting, samples: map[int]int{0x40: 9}, first: 5, last: 6},
	} {
		l := parseSASS(sassOf(c.code))["k"]
		found, _, ok := l.hottest(c.samples)
		if ok != (c.first > 0) || found.First != c.first || found.Last != c.last {
			t.Errorf("%s: %d to %d, want %d to %d", name, found.First, found.Last, c.first, c.last)
		}
	}
	found, _, _ := parseSASS(sassOf("MOV/1 .L_x_0: LDG/7 FFMA/9 BRA>.L_x_0 EXIT/12"))["k"].hottest(map[int]int{0x10: 3, 0x40: 1})
	if want := (gates.CodeLoop{First: 2, Last: 4, File: "k.cu", Line: 7, LastLine: 9, Sampled: 0.75}); found != want {
		t.Errorf("%+v, want %+v", found, want)
	}
}

// objdump shows branches by their targets; each section begins at 0.
func TestHottestLoopOfAHost(t *testing.T) {
	const text = "Disassembly of section .text.a:\n\n0000000000000000 <a>:\n   0:\txor    %eax,%eax\n   2:\taddss  (%rdi),%xmm0\n   6:\tmulss  %xmm1,%xmm0\n   a:\tjne    2 <a+0x2>\n   c:\tret\n" +
		"Disassembly of section .text.b:\n\n0000000000000000 <b>:\n   0:\tnop\n   2:\tjmp    a <b+0xa>\n   a:\tb.ne   2 <b+0x2>  // arm\n"
	l := parseObjdump(text)[""]
	loops := l.loops()
	if len(loops) != 2 || loops[0] != (loop{1, 3, 1}) || loops[1] != (loop{5, 6, 1}) {
		t.Errorf("%+v", loops)
	}
	if found, _, ok := l.hottest(nil); !ok || found.First != 2 || found.Last != 4 {
		t.Errorf("%+v", found)
	}
}

// The diff begins with the loop, whose instructions keep their numbers, and goes on with what differs around it.
func TestDiffFromTheHottestLoop(t *testing.T) {
	before := parseSASS(sassOf("MOV S2R .L_x_0: LDG/7 FFMA/8 BRA>.L_x_0 STG EXIT"))["k"]
	after := parseSASS(sassOf("IMAD S2R .L_x_0: LDG/7 HFMA/8 BRA>.L_x_0 RED EXIT"))["k"]
	diff, found := compareFromHottest(before, after, nil, nil)
	want := "@@ -3,3 +3,3 @@ k.cu:8\n LDG R1, R2\n-FFMA R1, R2\n+HFMA R1, R2\n @P0 BRA `(.L)\n" +
		"@@ -1,2 +1,2 @@\n-MOV R1, R2\n+IMAD R1, R2\n S2R R1, R2\n" +
		"@@ -6,2 +6,2 @@ k.cu:8\n-STG R1, R2\n+RED R1, R2\n EXIT R1, R2\n"
	if diff != want || found == nil || found.Same || found.Candidate.First != 3 || found.Candidate.Last != 5 {
		t.Errorf("%+v\n%s\nwant\n%s", found, diff, want)
	}
	same := parseSASS(sassOf("IMAD S2R .L_x_0: LDG/7 FFMA/8 BRA>.L_x_0 STG EXIT"))["k"]
	if diff, found = compareFromHottest(before, same, nil, nil); found == nil || !found.Same || diff != compareListings(before, same) {
		t.Errorf("of equal loops %+v\n%s", found, diff)
	}
	if diff, found = compareFromHottest(before, before[:2], nil, nil); found != nil || diff != compareListings(before, before[:2]) {
		t.Errorf("of a side without a loop %+v\n%s", found, diff)
	}
}
