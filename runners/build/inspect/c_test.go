package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// TestParseC parses output of gcc 12 and clang 17. The tests of runners/backend/cpu run the installed
// compiler.
func TestParseC(t *testing.T) {
	for _, c := range []struct {
		name, text string
		findings   []string
		trouble    string
	}{
		{name: "nothing"},
		{name: "heap, by gcc", text: `=================================================================
==2==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x611000000140 at pc 0x55d1c0b3f2a1 bp 0x7ffe sp 0x7ffe
READ of size 4 at 0x611000000140 thread T0
    #0 0x55d1c0b3f2a0 in scale DIR/k.c:9
    #1 0x55d1c0b3f0f1 in main /tmp/build/main.c:38
    #2 0x7f5d in __libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58

0x611000000140 is located 0 bytes to the right of 256-byte region [0x611000000040,0x611000000140)
allocated by thread T0 here:
    #0 0x7f5d in __interceptor_posix_memalign ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:145
    #1 0x55d1 in copy /tmp/build/main.c:14
    #2 0x55d1 in kernelgate_argument_x /tmp/build/main.c:21
`, findings: []string{"out-of-bounds: a read of 4 bytes outside the argument x in k.c:9"}},
		{name: "stack, by clang, in a library's function", text: `==1==ERROR: AddressSanitizer: stack-buffer-overflow on address 0x7ff at pc 0x1 bp 0x2 sp 0x3
WRITE of size 16 at 0x7ff thread T0
    #0 0x4a2f in __asan_memcpy (/tmp/kernel+0x4a2f) (BuildId: 12ab)
    #1 0x4c5d in scale(float const*, int) DIR/sub/k.c:12:5
`, findings: []string{"out-of-bounds: a write of 16 bytes outside an array on the stack in sub/k.c:12"}},
		{name: "freed memory", text: `==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1 at pc 0x2 bp 0x3 sp 0x4
READ of size 1 at 0x1 thread T0
    #0 0x1 in scale DIR/k.c:3
`, findings: []string{"use-after-free: a read of 1 byte of memory that is gone (heap-use-after-free) in k.c:3"}},
		{name: "a wild pointer", text: `AddressSanitizer:DEADLYSIGNAL
=================================================================
==2==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc 0x5 bp 0x7 sp 0x7 T0)
==2==The signal is caused by a READ memory access.
    #0 0x5 in scale DIR/k.c:5
`, findings: []string{"out-of-bounds: an access to an address that is not there (SEGV) in k.c:5"}},
		{name: "undefined", text: `k.c:7:15: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'
sub/k.c:8:9: runtime error: load of misaligned address 0x7ffe1 for type 'const int', which requires 4 byte alignment
0x7ffe1: note: pointer points here
 00 00 00  00 00 00
k.c:9:3: runtime error: index 10 out of bounds for type 'int [10]'
`, findings: []string{
			"undefined: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int' in k.c:7",
			"misaligned: load of misaligned address for type 'const int', which requires 4 byte alignment in k.c:8",
			"out-of-bounds: index 10 out of bounds for type 'int [10]' in k.c:9"}},
		{name: "a race", text: `==================
WARNING: ThreadSanitizer: data race (pid=3)
  Write of size 4 at 0x1 by main thread:
    #0 scale DIR/k.c:16 (kernel+0x1233)
    #1 main /tmp/main.c:4 (kernel+0x134f)

  Previous write of size 4 at 0x1 by thread T1:
    #0 other DIR/k.c:8 (kernel+0x11dc)

  Location is global 'shared' of size 4 at 0x1 (kernel+0x405c)

  Thread T1 (tid=9, finished) created by main thread at:
    #0 pthread_create ../tsan_interceptors_posix.cpp:1001 (libtsan.so.2+0x5e686)
`, findings: []string{"race: a race between write and write in k.c:8 and :16"}},
		{name: "unwritten memory", text: `==7==WARNING: MemorySanitizer: use-of-uninitialized-value
    #0 0x4 in scale DIR/k.c:6:13
    #1 0x4 in main /tmp/main.c:38:5

  Uninitialized value was created by a heap allocation
    #0 0x4 in posix_memalign (/tmp/kernel+0x4)
`, findings: []string{"uninitialised-read: a use of memory that nobody wrote in k.c:6"}},
		{name: "a sanitizer that does not start", text: "FATAL: ThreadSanitizer: unexpected memory mapping 0x5e4b-0x5e4c\n", trouble: "unexpected memory mapping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := sources(t, "k.c", "sub/k.c")
			r := ParseC(strings.ReplaceAll(c.text, "DIR", files.dir), files)
			if diff := cmp.Diff(c.findings, lines(r)); diff != "" {
				t.Error(diff)
			}
			if c.trouble == "" && r.Trouble != "" || !strings.Contains(r.Trouble, c.trouble) {
				t.Errorf("trouble: %q", r.Trouble)
			}
		})
	}
}

func TestForC(t *testing.T) {
	const gcc, clang = "cc (Debian 12.2.0-14) 12.2.0", "Debian clang version 17.0.6"
	for _, c := range []struct {
		tool    policy.Sanitizer
		version string
		flag    string
	}{
		{policy.Memcheck, gcc, "-fsanitize=address,undefined"},
		{policy.Racecheck, gcc, "-fsanitize=thread"},
		{policy.Initcheck, gcc, ""},
		{policy.Initcheck, clang, "-fsanitize=memory"},
		{policy.Synccheck, clang, ""},
	} {
		got, ok := ForC(c.tool, c.version)
		if ok != (c.flag != "") || ok && got.Flag() != c.flag {
			t.Errorf("%s by %s: %q, %v", c.tool, c.version, got.Flag(), ok)
		}
	}
}

func FuzzParseC(f *testing.F) {
	for _, seed := range []string{
		"==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\nREAD of size 4 at 0x1 thread T0\n    #0 0x1 in f /k/k.c:9\n",
		"WARNING: ThreadSanitizer: data race (pid=3)\n  Write of size 4 at 0x1 by main thread:\n    #0 f /k/k.c:16 (e+0x1)\n\n  Previous read of size 4 at 0x1 by thread T1:\n",
		"k.c:7:15: runtime error: signed integer overflow: 1 + 1\n", "==1==ERROR: LeakSanitizer: detected memory leaks\n", "#0 \n#1 a b:\n",
	} {
		f.Add(seed)
	}
	files := Files{dir: "/k", base: map[string]string{"k.c": "k.c"}}
	f.Fuzz(func(t *testing.T, text string) { checkReport(t, ParseC(text, files)) })
}
