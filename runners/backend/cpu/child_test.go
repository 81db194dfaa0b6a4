package cpu

import (
	"encoding/binary"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
)

// A counting program says that it is ready and done at once, and otherwise counts in
// the shared memory for as long as it runs.
const counting = `#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void count(volatile uint64_t *memory)
{
    uint64_t command[3], n = 0;
    write(5, "r", 1);
    while (memory[1] == 0) /* until the test says that the command is there */
        memory[0] = ++n;
    if (read(4, command, sizeof command) == sizeof command)
        write(5, "k", 1);
    for (;;)
        memory[0] = ++n;
}
int main(void)
{
    volatile uint64_t *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            count(memory);
        waitpid(pid, 0, 0);
    }
}
`

// A program that works whenever it can, before its command and after its answer,
// stands still while its memory is filled and read, and pays for the rest.
func TestStandsStillOutOfTurn(t *testing.T) {
	a := newArena(t, correctOnly)
	c, err := startChild(t.Context(), a.compile(t, "counting", counting, "").path, 4096, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	count := func() uint64 { return binary.NativeEndian.Uint64(c.memory.data) }
	still := func(when string) {
		t.Helper()
		before, from := count(), time.Now()
		for time.Since(from) < 3*time.Millisecond {
			runtime.Gosched()
		}
		if after := count(); after != before {
			t.Errorf("%s the program counted on from %d to %d", when, before, after)
		}
	}
	for range 5 {
		clear(c.memory.data)
		if f, err := c.ready(); f != nil || err != nil {
			t.Fatal(f, err)
		}
		still("before its command")
		c.memory.data[8] = 1
		took, f, err := c.launch(0, 0)
		if f != nil || err != nil {
			t.Fatal(f, err)
		}
		still("after its answer")
		if took.Device <= 0 || took.Wall <= 0 {
			t.Errorf("it took %v", took)
		}
	}
}

// The processor's time is the kernel's: it runs while the kernel does, is no more
// than the wall's, and does not hang on how busy the machine is.
func TestProcessorTime(t *testing.T) {
	w := built(t, include+"void scale(const float *x, float *y, int32_t N) { for (volatile long i = 0; i < 10000000; i++) ; }")
	c, err := startChild(t.Context(), w.sides["candidate"].path, 1<<16, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, launches := range []int{0, 1} {
		took, f, err := c.launch(0, launches)
		if f != nil || err != nil {
			t.Fatal(f, err)
		}
		if long := took.Device > 2*time.Millisecond; long != (launches > 0) || took.Device > took.Wall+10*time.Millisecond {
			t.Errorf("%d launches took %v of %v", launches, took.Device, took.Wall)
		}
	}
}

// No memory that a kernel wrote is there for the next one.
func TestMemoryIsLoadedWhole(t *testing.T) {
	m, err := newMemory(1 << 12)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	full := func(b byte) []byte {
		s := make([]byte, 1<<10)
		for i := range s {
			s[i] = b
		}
		return s
	}
	m.load([][]byte{full(1), full(2), full(3)})
	if m.beyond() {
		t.Error("nobody wrote behind the slots")
	}
	m.load([][]byte{full(4)})
	for i, b := range m.data {
		if want := map[bool]byte{true: 4}[i < 1<<10]; b != want {
			t.Fatalf("byte %d is %d, want %d", i, b, want)
		}
	}
	m.data[len(m.data)-1] = 1
	if !m.beyond() {
		t.Error("the last byte was written, and nobody saw")
	}
}

// A process whose memory takes long to free is dead before the next side runs.
func TestProcessIsDeadAfterItsLaunch(t *testing.T) {
	w := built(t, "#include <sys/mman.h>\n"+include+`void scale(const float *x, float *y, int32_t N)
{
    char *p = mmap(0, 200 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, 200 << 20);
    for (int i = 0; i < N; i++) y[i] = 2 * x[i];
}
`)
	d, err := newDrawer(w.job.Manifest, w.job.Manifest.Shapes[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := startChild(t.Context(), w.sides[runners.Candidate].path, 2*d.layout.Size, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := d.draw(distribution.Normal, make([]uint64, 2)); err != nil {
		t.Fatal(err)
	}
	for name, launch := range map[string]func([][]byte) (interleave.Times, *gates.Failure, error){"a batch": c.launchOn, "one by one": c.launchEach} {
		if f, err := c.ready(); f != nil || err != nil {
			t.Fatal(f, err)
		}
		pid := c.waiting
		if _, f, err := launch(d.images); f != nil || err != nil {
			t.Fatal(f, err)
		}
		if s := stateOf(pid); !s.dead() {
			t.Errorf("%s: the process is in state %c", name, s.letter)
		}
	}
}

// The time that a side waits for a processor is not its own, up to a bound.
func TestWaitingDoesNotCount(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		took, waited, left time.Duration
		starved            bool
	}{
		{2 * s, 0, 0, false},
		{2 * s, s / 2, s / 2, false},
		{5 * s, 3 * s, 0, false},
		{5 * s, 4 * s, s, false},
		{40 * s, 39 * s, s, true},
		{40 * s, 10 * s, 0, false},
		{2 * s, 1, time.Millisecond, false},
	} {
		if left, starved := remaining(2*s, c.took, c.waited); left != c.left || starved != c.starved {
			t.Errorf("after %v, %v of them in the queue: %v and starved %v, want %v and %v", c.took, c.waited, left, starved, c.left, c.starved)
		}
	}
}

// A process that shares its processor with others has waited for it. One that is alone with its endless loop is accused.
func TestQueueIsSeen(t *testing.T) {
	w := built(t, include+"void scale(const float *x, float *y, int32_t N) { for (volatile long i = 0;; i++) ; }")
	k, err := startChild(t.Context(), w.sides["candidate"].path, 1<<16, 1, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	if f, err := k.ready(); f != nil || err != nil {
		t.Fatal(f, err)
	}
	var one unix.CPUSet
	one.Set(0)
	if err := unix.SchedSetaffinity(k.waiting, &one); err != nil {
		t.Skipf("a process cannot be bound to a processor: %v", err)
	}
	for range 3 {
		other := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		defer other.Wait()
		defer other.Process.Kill()
		if err := unix.SchedSetaffinity(other.Process.Pid, &one); err != nil {
			t.Fatal(err)
		}
	}
	before, start := k.queued(), time.Now()
	_, f, err := k.launch(0, 1)
	took := time.Since(start)
	if err != nil || f == nil || f.Kind != gates.FailureTimeout {
		t.Fatalf("after %v: %v, %v", took, f, err)
	}
	if len(before) < 2 {
		t.Errorf("the scheduler says nothing of %v", before)
	}
	if took < 800*time.Millisecond {
		t.Errorf("it was accused after %v, most of which it waited", took)
	}
}
