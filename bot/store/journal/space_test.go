package journal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A journal at its limit still answers, and says that it takes no writes; used and limit tell why.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{MaxStore: 1 << 20})
	if err := j.Writable(ctx); err != nil {
		t.Fatal(err)
	}
	var refused error
	for i := 0; refused == nil && i < 64; i++ {
		_, refused = j.Accept(ctx, webhook.Delivery{ID: fmt.Sprint(i), Event: "push", Body: []byte(strings.Repeat("x", 64<<10))})
	}
	j.written.at = j.written.at.Add(-writeEvery)
	if err := j.Writable(ctx); err == nil || refused == nil {
		t.Errorf("webhooks: %v, writable: %v", refused, err)
	}
	if _, err := j.Last(ctx, "ready"); err == nil || strings.Contains(err.Error(), "resources") {
		t.Errorf("it does not answer: %v", err)
	}
	s := j.Space(ctx)
	if len(s) != 1 || s[0].Err != nil || s[0].Limit != 1<<20 || s[0].Used < s[0].Limit*8/10 {
		t.Errorf("space: %+v", s)
	}
}

// What the journal holds already counts towards the limit: it is not smaller after every start. A twentieth of the disk stays free.
func TestStoreLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, err := storeLimit(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "held"), make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := storeLimit(dir)
	if err != nil {
		t.Fatal(err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	size, free := int64(disk.Blocks)*int64(disk.Bsize), int64(disk.Bavail)*int64(disk.Bsize)
	if most := 8<<20 + max(free-size/21, 1<<20); before <= 0 || after <= 0 || after > most+size/100 {
		t.Errorf("limits %d and %d on a disk of %d with %d free", before, after, size, free)
	}
}

// Servers elsewhere are asked at their monitors; one that is away, or has turned JetStream off, is told apart.
func TestSpaceOfServers(t *testing.T) {
	t.Parallel()
	monitor := func(text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/jsz" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, text)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	good, off := monitor(`{"storage": 8, "config": {"max_storage": 10}}`), monitor(`{"disabled": true}`)
	j := &Journal{opt: Options{Monitors: []string{good, off, "http://127.0.0.1:1"}}}
	known := map[string]Space{}
	for _, s := range j.Space(testContext(t)) {
		known["http://"+s.Server] = s
	}
	if s := known[good]; len(known) != 3 || s.Err != nil || s.Used != 8 || s.Limit != 10 || known[off].Err == nil || known["http://127.0.0.1:1"].Err == nil {
		t.Errorf("%+v", known)
	}
}
