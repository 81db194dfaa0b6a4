package tune

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// announced tells on standard output what a lab does, and waits for a byte on standard input before it does it.
type announced struct{ *fakeLab }

func announce(call string) {
	fmt.Println("call " + call)
	os.Stdin.Read(make([]byte, 1))
}

func (a announced) Build(ctx context.Context, id string, c Candidate) (Built, error) {
	announce("build " + id)
	return a.fakeLab.Build(ctx, id, c)
}

func (a announced) Check(ctx context.Context, id string, c Candidate) (Checked, error) {
	announce("check " + id)
	return a.fakeLab.Check(ctx, id, c)
}

func (a announced) Round(ctx context.Context, id string, c Candidate) (Timed, error) {
	announce(fmt.Sprintf("round %d %s", a.round, id))
	return a.fakeLab.Round(ctx, id, c)
}

// childFolder names the folder of a search to a child process.
const childFolder = "KERNELGATE_TUNE_CHILD"

// TestChild is not a test: it goes on with a search until it is killed.
func TestChild(t *testing.T) {
	dir := os.Getenv(childFolder)
	if dir == "" {
		t.Skip("it is the child of TestKilledProcess")
	}
	log, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newSearch(t, log, announced{newFakeLab(testSpace(), testSpeed)}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestKilledProcess kills real processes with SIGKILL. The search ends with the same winner, and only
// work that was under way at a kill is done again.
func TestKilledProcess(t *testing.T) {
	want := runSearch(t, "local", newFakeLab(testSpace(), testSpeed))
	dir := filepath.Join(t.TempDir(), "search")
	log, err := CreateLog(dir, testHeader("local"))
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	rng := rand.New(rand.NewPCG(4, 4))
	const kills = 5
	calls := map[string]int{}
	for range kills {
		child := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
		child.Env = append(os.Environ(), childFolder+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		permit, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		after := 2 + rng.IntN(12)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			what, found := strings.CutPrefix(lines.Text(), "call ")
			if !found {
				continue
			}
			calls[what]++
			if after--; after == 0 {
				child.Process.Kill()
			}
			if after > 0 {
				permit.Write([]byte{1})
			}
		}
		child.Wait()
		if after > 0 {
			t.Fatal("the search ended before it was killed")
		}
	}
	if log, err = OpenLog(dir); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lab := newFakeLab(testSpace(), testSpeed)
	r, err := newSearch(t, log, lab).Run(t.Context())
	if err != nil || r.Winner != want.Winner || r.Seconds != want.Seconds {
		t.Errorf("after %d kills: winner %q in %v s, want %q in %v s (%v)", kills, r.Winner, r.Seconds, want.Winner, want.Seconds, err)
	}
	again := 0
	for what, n := range lab.calls {
		calls[what] += n
	}
	for _, n := range calls {
		again += n - 1
	}
	// A process that is killed may have a call under way on every processor, and has recorded none of them.
	if most := kills * (runtime.NumCPU() + 3); again > most {
		t.Errorf("%d calls were repeated, want at most %d", again, most)
	}
}
