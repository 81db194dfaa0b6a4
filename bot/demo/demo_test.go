package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/runners"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// testKey is generated once, because generating RSA keys is slow under the race detector.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// An audience records what the terminal shows, and acts when a certain line appears.
type audience struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   map[string]func(all string) // by a part of the line; each acts once
}

func (r *audience) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(p)
	for words, act := range r.on {
		if strings.Contains(string(p), words) {
			delete(r.on, words)
			go act(r.text.String()) // it may be slow
		}
	}
	return len(p), nil
}

func (r *audience) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// A tape records the runner's progress.
type tape struct{ seen []runners.Event }

func (t *tape) Report(e runners.Event) { t.seen = append(t.seen, e) }
func (*tape) Clear()                   {}

// run plays the demo in a separate temporary folder.
func run(t *testing.T, ctx context.Context, out *audience, change func(*Options)) (tmp string, live *tape, right bool, err error) {
	t.Helper()
	tmp, live = t.TempDir(), &tape{}
	key, err := testKey()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	opt := Options{
		Once: true, Version: "kernelgate test", Seed: 7, Now: time.Now, Getenv: os.Getenv, Out: out, Live: live,
		key: key, Render: func(v *gates.Verdict) string { return report.OneLine(v) + "\n" },
	}
	change(&opt)
	right, err = Run(ctx, opt)
	return tmp, live, right, err
}

func left(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestStory checks that the story is printed as it happens, that users can try commands afterwards,
// and that Ctrl-C leaves nothing behind.
func TestStory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := &audience{}
	out.on = map[string]func(string){
		"curl ": func(text string) {
			// Execute the printed command by hand.
			m := regexp.MustCompile(`Bearer (\S+)' -d '(.+)' \\\n\s+(\S+)\n`).FindStringSubmatch(text)
			if m == nil {
				t.Errorf("no command to copy in\n%s", text)
				cancel()
				return
			}
			rq, _ := http.NewRequestWithContext(ctx, "POST", m[3], strings.NewReader(m[2]))
			rq.Header.Set("Authorization", "Bearer "+m[1])
			answer, err := http.DefaultClient.Do(rq)
			if err != nil || answer.StatusCode != http.StatusCreated {
				t.Errorf("the comment was answered %v, %v", answer, err)
				cancel()
				return
			}
			answer.Body.Close()
		},
		"#4 completed failure": func(string) { cancel() },
	}
	tmp, live, right, err := run(t, ctx, out, func(o *Options) { o.Once = false })
	if err != nil || !right {
		t.Fatalf("it ended with %v, %v:\n%s", right, err, out)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("nobody answered the command that people are offered:\n%s", out)
	}
	if len(live.seen) == 0 || live.seen[0] != (runners.Event{Gate: "performance", Text: "scripted"}) {
		t.Errorf("the runner's progress is %v", live.seen)
	}
	if found := left(t, tmp); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
	told, _, _ := strings.Cut(out.String(), "\nLook around")
	golden(t, "testdata/story.txt", normal(told))
}

// normal replaces the parts of a text that differ from run to run.
func normal(text string) string {
	text = regexp.MustCompile(`(?m)^ *\d+\.\d s`).ReplaceAllString(text, "   T.T s")
	text = regexp.MustCompile(`in \d+ s by`).ReplaceAllString(text, "in T s by")
	ports := map[string]string{}
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllStringFunc(text, func(port string) string {
		if ports[port] == "" {
			ports[port] = []string{"GITHUB", "BOT", "ANOTHER"}[min(len(ports), 2)]
		}
		return ports[port]
	})
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s is otherwise now (-update rewrites it):\n%s", file, d)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &audience{on: map[string]func(string){"walt opens": func(string) { cancel() }}}
	tmp, _, _, err := run(t, ctx, out, func(*Options) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v:\n%s", err, out)
	}
	if found := left(t, tmp); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

// TestNoVerdict checks that if a verdict does not arrive, the error contains what GitHub shows
// instead, and the log is kept.
func TestNoVerdict(t *testing.T) {
	out := &audience{}
	tmp, _, _, err := run(t, t.Context(), out, func(o *Options) { o.patience = 1 })
	found := left(t, tmp)
	if len(found) != 1 {
		t.Fatalf("left behind: %v", found)
	}
	log := filepath.Join(found[0], "bot.log")
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		t.Errorf("the log: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(found[0], "data")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the bot's data is open to others: %v, %v", info.Mode(), err)
	}
	if err == nil || !strings.Contains(err.Error(), "waiting for a verdict on #1") || !strings.Contains(err.Error(), "check") || !strings.Contains(err.Error(), log) {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(out.String(), "are kept: "+found[0]) {
		t.Errorf("nobody says what is kept:\n%s", out)
	}
}
