package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// A kernel that could tell which side it is would be slow as a baseline, once it is merged. What its
// process can ask for is the same for each side, whenever and how often it runs: no facts about
// files, no process id by a call, and none in the memory of the C library.
func TestSidesSeeTheSame(t *testing.T) {
	a := newArena(t, correctOnly)
	const source = `#define _GNU_SOURCE
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
extern char **environ;
void scale(const float *x, float *y, int32_t N)
{
    struct stat s;
    for (int i = 0; i < N; i++)
        y[i] = 0;
    int at = 0, *self = (int *)((char *)__builtin_thread_pointer());
    y[at++] = stat("/kernel", &s);
    y[at++] = stat("/", &s);
    y[at++] = fstat(1, &s);
    y[at++] = fstat(3, &s);
    y[at++] = getpid();
    y[at++] = syscall(SYS_gettid);
    y[at++] = getauxval(AT_UID);
    for (char **e = environ; *e; e++)
        for (char *c = *e; *c; c++)
            y[at] = y[at] * 3 + *c, y[at] -= (int)(y[at] / 65521) * 65521;
    at++;
    for (const char *c = (const char *)getauxval(AT_EXECFN); *c; c++)
        y[at] += *c;
    at++;
    for (int i = 0; i < 500 && at < N; i++) /* the process id would be in here */
        y[at++] = self[i] > 0 && self[i] < 4096 ? self[i] : 0;
}
`
	d, err := newDrawer(a.manifest, a.manifest.Shapes[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	exe := a.compile(t, "sees", stub(a.manifest.CPrototype(a.manifest.Entry), a.manifest.Entry, d.args, 1), source)
	other := filepath.Join(t.TempDir(), "kernel")
	text, err := os.ReadFile(exe.path)
	if err == nil {
		err = runnable.Write(other, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	const asked = 9 // places that do not depend on the launcher
	var seen [][]byte
	var first []int // the first sample of its side
	for side, path := range []string{exe.path, other} {
		c, err := startChild(t.Context(), path, d.layout.Size, 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		for range 2 + 3*side {
			if err := d.draw(distribution.Normal, []uint64{1}); err != nil {
				t.Fatal(err)
			}
			if _, failure, err := c.launchOn(d.images[:1]); failure != nil || err != nil {
				t.Fatal(failure, err)
			}
			first = append(first, side*2)
			seen = append(seen, slices.Concat(d.layout.Outputs(c.memory.data[:d.layout.Size])...))
		}
	}
	for i, s := range seen {
		for at := range len(s) / 4 {
			with := 0
			if at >= asked { // the C library's memory is that of the launcher
				with = first[i]
			}
			if got, want := s[4*at:4*at+4], seen[with][4*at:4*at+4]; !bytes.Equal(got, want) {
				t.Errorf("sample %d sees %g in place %d, and sample %d saw %g", i, math.Float32frombits(binary.NativeEndian.Uint32(got)), at, with, math.Float32frombits(binary.NativeEndian.Uint32(want)))
			}
		}
	}
}

// A process that answers in its stub's place, and watches the memory for its next input, never gives up
// its processor. The system then brings its clock up to date only now and then. Its single launches
// take the time that it spent all the same: each of these spends about as much.
func TestClockOfAProcessThatNeverWaits(t *testing.T) {
	a := newArena(t, correctOnly)
	const source = `#include <stdint.h>
#include <time.h>
#include <unistd.h>
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1000000000l + t.tv_nsec; }
static void work(int64_t turns) { for (volatile int64_t i = 0; i < turns; i++) ; }
void scale(const float *x, float *y, int32_t N)
{
    int64_t from = now(), turns = 1000000;
    work(turns);
    turns = turns * SPENT / (now() - from);
    for (int i = 0;; i++) {
        work(turns); /* asking for the time would bring the clock up to date */
        if (i == LAUNCHES - 1) {
            char command[24]; /* all of them are here, for the next process not to find */
            while (i-- > 0)
                read(4, command, sizeof command);
            return;
        }
        write(5, "k", 1);
        x += SLOT / 4;
        while (*((volatile uint64_t *)(x - FIRST / 4)) == 0) /* the next table */
            ;
    }
}
`
	const launches, spent = 16, 100 * time.Microsecond
	d, err := newDrawer(a.manifest, a.manifest.Shapes[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("SPENT", fmt.Sprint(spent.Nanoseconds()), "LAUNCHES", fmt.Sprint(launches), "SLOT", fmt.Sprint(d.layout.Size), "FIRST", fmt.Sprint(d.layout.Offsets[0])).Replace(source)
	exe := a.compile(t, "never-waits", stub(a.manifest.CPrototype(a.manifest.Entry), a.manifest.Entry, d.args, 1), text)
	c, err := startChild(t.Context(), exe.path, launches*d.layout.Size, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	seeds := make([]uint64, launches)
	for range 5 {
		if err := d.draw(distribution.Normal, seeds); err != nil {
			t.Fatal(err)
		}
		times, failure, err := c.launchEach(d.images)
		if failure != nil || err != nil {
			t.Fatal(failure, err)
		}
		if times.Device < spent/4 || times.Mean < spent/4 {
			t.Errorf("the launches spent %v each, and the median is %v, the mean %v", spent, times.Device, times.Mean)
		}
	}
}
