package journal

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal/natstest"
)

// smallDisk mounts a disk of that many bytes.
func smallDisk(t *testing.T, dir string, size int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), syscall.Mount("small", dir, "tmpfs", 0, "size="+strconv.Itoa(size))); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// A server of a cluster that runs out of disk is no reason to lose anything: what was put is read back, whichever server has it.
func TestFullServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	smallDisk(t, filepath.Join(dir, "1"), 3<<20)
	c := &cluster{natstest.NewIn(t, clusterPorts(t), dir)}
	j := c.open(t, Options{Replicas: 3})
	ctx := testContext(t)
	content := make([]byte, 256<<10)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	for i := range 18 {
		name := fmt.Sprint("blob ", i)
		for {
			_, err := j.Bundles.Put(ctx, name, bytes.NewReader(content))
			if err == nil {
				break
			}
			t.Logf("%s: %v", name, err)
			select {
			case <-ctx.Done():
				t.Fatal(err)
			case <-time.After(100 * time.Millisecond):
			}
		}
		for range 5 {
			r, _, err := j.Bundles.Get(ctx, name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got, err := io.ReadAll(r)
			if r.Close(); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
	}
	fill(t, ctx, j)
	verify(t, ctx, j)
	for noticed := false; !noticed; {
		all, err := j.Health(ctx)
		if ctx.Err() != nil {
			t.Fatalf("nobody notices that a server has not got everything: %+v, %v", all, err)
		}
		for _, c := range all {
			noticed = noticed || c.Behind+c.Away > 0
		}
	}
}
