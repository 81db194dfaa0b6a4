package controller_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners/host/subprocess"
)

// childEnv makes the test binary a bot that runs until it is killed.
const childEnv = "KERNELGATE_TEST_BOT"

func TestMain(m *testing.M) {
	natstest.Main()
	runnerMain()
	text, ok := os.LookupEnv(childEnv)
	if !ok {
		os.Exit(m.Run())
	}
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if _, err := s.start(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// A victim is a bot in a process of its own.
type victim struct {
	cmd *exec.Cmd
	log *bytes.Buffer
}

func (w *world) spawn(s setup) *victim {
	w.Helper()
	text, err := json.Marshal(s)
	w.no(err)
	v := &victim{cmd: exec.Command(os.Args[0]), log: &bytes.Buffer{}}
	v.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	v.cmd.Stderr = v.log
	w.no(subprocess.Start(v.cmd, syscall.SIGKILL))
	return v
}

func (v *victim) kill() {
	v.cmd.Process.Kill()
	v.cmd.Wait()
}

// A bot that is killed at any moment, again and again, loses nothing and says
// nothing twice. KERNELGATE_CRASHES says how often; CI has less time than a
// weekend.
func TestCrashes(t *testing.T) {
	crashes := long.Times(3, 30)
	if text := os.Getenv("KERNELGATE_CRASHES"); text != "" {
		var err error
		if crashes, err = strconv.Atoi(text); err != nil {
			t.Fatalf("KERNELGATE_CRASHES: %v", err)
		}
	}
	w := newWorld(t, worldOptions{watchful: true, lease: 3 * time.Second})
	w.settle()
	w.no(w.running.stop())
	s := w.setup()
	rng := rand.New(rand.NewPCG(3, uint64(crashes)))
	var all []expectation
	v := w.spawn(s)
	for i := range crashes {
		if i%10 == 0 {
			all = append(all, w.crowd(4, "main")...)
		}
		// From the middle of the start to well after the work has begun.
		<-time.After(time.Duration(20+rng.IntN(1500)) * time.Millisecond)
		v.kill()
		if bytes.Contains(v.log.Bytes(), []byte("panic")) {
			t.Fatalf("crash %d: %s", i, v.log)
		}
		v = w.spawn(s)
	}
	w.rightInTheEnd(all)
	// What is right must stay so: nothing that was lost may turn up late.
	<-time.After(3 * time.Second)
	if err := w.right(all); err != nil {
		t.Error(err)
	}
	v.kill()
	t.Logf("%d crashes, %d pull requests", crashes, len(all))
}
