//go:build !race

// The weeks on the fake clock are mostly the NATS server's own timers, which take five times as long under the race detector.

package journal

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// aloneEnv makes a test run in its own process.
const aloneEnv = "KERNELGATE_JOURNAL_TEST_ALONE"

// The server deletes deliveries, their states and bundles after their retention time, and keeps events and artifacts. The test
// uses a fake clock. This works because the embedded server has no connection to the outside.
func TestRetention(t *testing.T) {
	t.Parallel()
	if os.Getenv(aloneEnv) == "" {
		// The NATS client shares timers between all connections of a process. Timers of a fake clock do not work with a real one.
		alone := exec.Command(os.Args[0], "-test.run=^TestRetention$", "-test.v", "-test.timeout=5m")
		alone.Env = append(os.Environ(), aloneEnv+"=yes")
		if out, err := alone.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestRetention ")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	ats.Register() // the server's clock for caches, which all servers of a process share, stays outside
	t.Cleanup(ats.Unregister)
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		j, err := Open(ctx, Options{Dir: dir, MaxStore: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if _, err := j.Accept(ctx, webhook.Delivery{ID: "one", Event: "push", Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(ctx, "run", 0, "kind", 1); err != nil {
			t.Fatal(err)
		}
		for _, b := range []*Blobs{j.Bundles, j.Artifacts} {
			if _, err := b.Put(ctx, "name", strings.NewReader("content")); err != nil {
				t.Fatal(err)
			}
		}
		const day = 24 * time.Hour
		begun := time.Now()
		for _, c := range []struct {
			after time.Duration
			left  string
		}{
			{7*day - time.Hour, "DELIVERIES EVENTS OBJ_BUNDLES OBJ_ARTIFACTS"},
			{7*day + time.Hour, "DELIVERIES EVENTS OBJ_ARTIFACTS"},
			{30*day + time.Hour, "EVENTS OBJ_ARTIFACTS"},
		} {
			time.Sleep(time.Until(begun.Add(c.after)))
			all, err := j.Usage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, u := range all {
				if u.Messages > 0 {
					left = append(left, u.Stream)
				}
			}
			if got := strings.Join(left, " "); got != c.left {
				t.Errorf("after %v: %s", c.after, got)
			}
		}
	})
}
