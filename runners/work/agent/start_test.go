package agent

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	taken := f.config()
	stop, _ := f.run(taken)
	next(t, f.asked, "the first runner")
	tests := []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"a state folder in use", func(c *Config) { c.StateDir = taken.StateDir }, "give each runner a separate one"},
		{"no state folder", func(c *Config) { c.StateDir = "" }, "it needs"},
		{"no name", func(c *Config) { c.Name = "" }, "it needs"},
		{"no labels", func(c *Config) { c.Labels = nil }, "it needs"},
		{"no token", func(c *Config) { c.Token = " " }, "there is no token"},
		{"a token in the clear", func(c *Config) { c.Servers = []string{"http://bot.example.com"} }, "use https://"},
		{"another scheme", func(c *Config) { c.Servers = []string{"nats://bot"} }, "neither unix:///path nor https://host"},
		{"a relative socket", func(c *Config) { c.Servers = []string{"unix://run/bot.sock"} }, "neither unix:///path nor https://host"},
		{"no such certificate", func(c *Config) { c.CA = "/does/not/exist" }, "certificates to trust"},
		{"no certificate", func(c *Config) { c.CA = filepath.Join(taken.StateDir, "LOCK") }, "holds no certificate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := f.config()
			tt.change(&c)
			if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	over := httptest.NewTLSServer(f)
	defer over.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: over.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	f.hand("job", 1)
	c := f.config()
	c.Servers, c.CA = []string{over.URL}, file
	f.run(c)
	f.result()
	if ask := next(t, f.asked, "the question"); ask.Runner != "ann" || ask.Host != "box" || ask.Version != "v1" || !slices.Equal(ask.Labels, []string{"l4"}) {
		t.Errorf("asked with %+v", ask)
	}
}

func TestKeep(t *testing.T) {
	s, lock, err := openStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	dir := t.TempDir()
	file := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	k, err := s.keep(protocol.LeaseResponse{Job: "a-b-1", Token: 12}, runners.Measured{
		Evidence:  &gates.Evidence{Kernel: "twice"},
		BuildLog:  strings.Repeat("é", protocol.MaxLog),
		Artifacts: []string{file("good", 3), file("big", protocol.MaxArtifact+1), file("a name", 1), link, filepath.Join(dir, "none")},
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.all()
	if err != nil || !slices.Equal(all, []storedResult{k}) || k.job != "a-b-1" || k.token != 12 {
		t.Errorf("kept %+v, found %+v, %v", k, all, err)
	}
	if names, err := k.artifacts(); err != nil || !slices.Equal(names, []string{"good"}) {
		t.Errorf("artifacts %v, %v", names, err)
	}
	r, err := k.read()
	if err != nil || r.Token != 12 || len(r.Log) > protocol.MaxLog {
		t.Errorf("token %d, a log of %d bytes, %v", r.Token, len(r.Log), err)
	}
	for _, part := range []string{"bytes are left out", "big was not kept: it is 64 MiB long", "a name was not kept", "link was not kept", "none was not kept: it is not there"} {
		if !strings.Contains(r.Log, part) {
			t.Errorf("the log does not say %q", part)
		}
	}
	var e gates.Evidence
	if err := json.Unmarshal(r.Evidence, &e); err != nil || e.Kernel != "twice" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestSeveralServers checks that a runner with several bots asks the next if one is away or does
// not lead, also in the middle of a job.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	first, second := newFake(t), newFake(t)
	for _, what := range []string{"lease", "beat", "bundle", "result"} {
		first.answer(what, http.StatusServiceUnavailable)
	}
	second.hand("job", 1)
	c := second.config()
	c.Servers = []string{away.URL, first.URL, second.URL}
	c.Measure = func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) {
		next(t, second.beats, "a beat at the one that answers")
		second.answer("beat", http.StatusServiceUnavailable)
		second.answer("result", http.StatusServiceUnavailable)
		first.answer("beat", 0)
		first.answer("result", 0)
		next(t, first.beats, "a beat at the other")
		return runners.Measured{Evidence: &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: "twice"}}, nil
	}
	second.run(c)
	if r, _ := first.result(); r.Token != 1 {
		t.Errorf("the result: %+v", r)
	}
}
