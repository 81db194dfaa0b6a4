package journal

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// childEnv makes the test binary a bot that accepts deliveries until it is killed.
const childEnv = "KERNELGATE_JOURNAL_TEST_CHILD"

func TestMain(m *testing.M) {
	natstest.Main()
	if job := os.Getenv(childEnv); job != "" {
		if err := child(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child prints "accepted <id>" after Accept and "handled <id>" in its handler: a kill
// finds it in every state. It ends, if not killed, with its parent's end of the pipe.
func child(job string) error {
	dir, prefix, _ := strings.Cut(job, "|")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	j, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(what, id string) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Println(what, id); err != nil {
			os.Exit(0)
		}
	}
	go func() {
		_ = j.Process(ctx, func(_ context.Context, d webhook.Delivery) error { say("handled", d.ID); return nil })
	}()
	var wg sync.WaitGroup
	for g := range 24 { // enough for batches
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("%s-%d-%d", prefix, g, i)
				if _, err := j.Accept(ctx, webhook.Delivery{ID: id, Event: "push", Body: make([]byte, 2000)}); err != nil {
					return
				}
				say("accepted", id)
			}
		})
	}
	wg.Wait()
	return j.Close()
}

// TestKilledWhileAccepting kills a bot in the middle of its work, again and again on the same folder: what it said it had
// accepted must be there, and be processed.
func TestKilledWhileAccepting(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), testContext(t)
	accepted, handled := make(map[string]bool), make(map[string]bool)
	for round := range 4 {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|r%d", childEnv, dir, round))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		enough, count := 40+35*round, 0
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			what, id, ok := strings.Cut(lines.Text(), " ")
			if !ok {
				continue // the kill cut the line
			}
			switch what {
			case "accepted":
				accepted[id] = true
				if count++; count == enough {
					if err := cmd.Process.Kill(); err != nil { // SIGKILL; what is in the pipe is read to its end
						t.Fatal(err)
					}
				}
			case "handled":
				handled[id] = true
			}
		}
		if err := cmd.Wait(); err == nil || count < enough {
			t.Fatalf("round %d: the child ended by itself (%v) after %d deliveries", round, err, count)
		}
	}

	j := open(t, Options{Dir: dir})
	for id := range accepted {
		if _, err := j.deliveries.GetLastMsgForSubject(ctx, "deliveries.push."+id); err != nil {
			t.Errorf("%s was accepted and is lost: %v", id, err)
		}
	}
	missing := len(accepted)
	for id := range accepted {
		if handled[id] {
			missing--
		}
	}
	t.Logf("%d accepted in 4 lives, %d of them not yet handled", len(accepted), missing)
	if missing == 0 {
		return
	}
	rest, done := context.WithTimeout(ctx, patience)
	defer done()
	err := j.Process(rest, func(_ context.Context, d webhook.Delivery) error {
		if accepted[d.ID] && !handled[d.ID] {
			handled[d.ID] = true
			if missing--; missing == 0 {
				done()
			}
		}
		return nil
	})
	if err != nil || missing > 0 {
		t.Errorf("%d accepted deliveries were never handled (%v)", missing, err)
	}
}
