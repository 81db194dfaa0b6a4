package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// fillDisk writes a file that leaves no space on a disk.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// until polls a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := testContext(t); !ok(); {
		select {
		case <-ctx.Done():
			t.Fatal(what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A disk without space refuses webhooks, and Writable says so. When it has space again, either the journal stores webhooks
// again, or Stuck says that a restart is needed; after that it stores them.
func TestDiskThatWasFull(t *testing.T) {
	ctx := testContext(t)
	disk := filepath.Join(t.TempDir(), "disk")
	smallDisk(t, disk, 48<<20)
	dir, ballast, n := filepath.Join(disk, "journal"), filepath.Join(disk, "ballast"), 0
	j := open(t, Options{Dir: dir, stuckIn: time.Millisecond})
	deliver := func(j *Journal) error {
		n++
		_, err := j.Accept(ctx, webhook.Delivery{ID: fmt.Sprint("d", n), Event: "push", Body: []byte(strings.Repeat("x", 100<<10))})
		return err
	}
	if err := errors.Join(deliver(j), j.Writable(ctx), j.Stuck()); err != nil {
		t.Fatal(err)
	}
	fillDisk(t, ballast)
	if err := deliver(j); err == nil {
		t.Fatal("a full disk takes a webhook")
	}
	until(t, "a journal on a full disk is writable", func() bool { return j.Writable(ctx) != nil })
	if err := j.Stuck(); err != nil {
		t.Errorf("a restart is asked for while the disk is full: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	until(t, "neither writable nor stuck", func() bool { return j.Writable(ctx) == nil || j.Stuck() != nil })
	if err := j.Stuck(); err != nil {
		t.Log(err)
		if err := j.Close(); err != nil {
			t.Log(err)
		}
		j = open(t, Options{Dir: dir})
	}
	if err := errors.Join(deliver(j), j.Writable(ctx)); err != nil {
		t.Errorf("after the disk had space again: %v", err)
	}
}

// The test writes leave no message behind, and none is handled as a delivery.
func TestProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{})
	if err := j.Writable(ctx); err != nil { // no delivery was stored yet, so this stores a test message
		t.Fatal(err)
	}
	info, err := j.deliveries.Info(ctx)
	if err != nil || info.State.Msgs != 0 || info.State.LastSeq != 1 {
		t.Errorf("%+v, %v", info.State, err)
	}
	if _, err := j.js.Publish(ctx, probeSubject, nil); err != nil { // as of a process that was killed in between
		t.Fatal(err)
	}
	if _, err := j.Accept(ctx, webhook.Delivery{ID: "real", Event: "push"}); err != nil {
		t.Fatal(err)
	}
	var handled []string
	work, stop := context.WithCancel(ctx)
	if err := j.Process(work, func(_ context.Context, d webhook.Delivery) error {
		handled = append(handled, d.ID)
		stop()
		return nil
	}); err != nil || fmt.Sprint(handled) != "[real]" {
		t.Errorf("handled %v, %v", handled, err)
	}
}
