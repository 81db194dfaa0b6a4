package controller_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A rogue is a runner with a good token that says what it likes.
type rogue struct{ *world }

func (r rogue) call(method, path string, body []byte) (int, []byte) {
	r.Helper()
	rq, err := http.NewRequestWithContext(r.ctx, method, "http://"+r.addr+path, bytes.NewReader(body))
	r.no(err)
	rq.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(rq)
	r.no(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	r.no(err)
	return answer.StatusCode, text
}

// lease waits for a job.
func (r rogue) lease() (l protocol.LeaseResponse) {
	r.Helper()
	r.until("a job", func() bool {
		code, text := r.call("POST", "/runner/v1/lease", []byte(`{"protocol":3,"runner":"runner","labels":["cpu"]}`))
		return code == http.StatusOK && json.Unmarshal(text, &l) == nil
	})
	return l
}

// job is what the bundle says of itself.
func (r rogue) job(l protocol.LeaseResponse) (job struct {
	Provenance gates.Provenance `json:"provenance"`
}) {
	r.Helper()
	_, data := r.call("GET", fmt.Sprintf("/runner/v1/jobs/%s/bundle?token=%d", l.Job, l.Token), nil)
	zip, err := gzip.NewReader(bytes.NewReader(data))
	r.no(err)
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		r.no(err)
		if h.Name == "job.json" {
			r.no(json.NewDecoder(archive).Decode(&job))
			return job
		}
	}
}

// newRogue is a world whose own runner is busy, so that the next job is the rogue's.
func newRogue(t *testing.T) rogue {
	w := newWorld(t, worldOptions{retold: true})
	held := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
	w.until("a running check", func() bool {
		c, _ := w.repo.Check(held.HeadSHA(), "kernelgate")
		return c.Status == "in_progress" && strings.Contains(c.Summary+c.Text+c.Title, "round")
	})
	return rogue{w}
}

// A runner's word on which change it measured, and so on the rule that judges it, is worth
// nothing: ten times slower does not pass for a refactoring
// with the same machine code.
func TestRunnerThatLies(t *testing.T) {
	r := newRogue(t)
	pr := r.propose("slow", "// speed 0.1\n", embedded.PROptions{Title: "Ten times slower"})
	l := r.lease()
	lie := map[string]any{
		"schema": gates.EvidenceSchema, "kernel": "scale", "mode": "cpu", "provenance": r.job(l).Provenance,
		"change": map[string]any{"labels": []string{"refactoring"}}, "device": map[string]any{"kind": "cpu", "name": "x", "arch": "x"}, "shapes": []any{},
		"correctness": map[string]any{"tolerance": map[string]any{"abs": 1, "rel": 0}},
		"same_code":   true,
	}
	data, err := json.Marshal(map[string]any{"token": l.Token, "evidence": lie, "log": "x"})
	r.no(err)
	if code, text := r.call("POST", "/runner/v1/jobs/"+l.Job+"/result", data); code/100 != 2 {
		t.Fatalf("the result was answered by %d: %s", code, text)
	}
	r.until("an end", func() bool {
		c, _ := r.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "completed"
	})
	c, _ := r.repo.Check(pr.HeadSHA(), "kernelgate")
	if c.Conclusion != "failure" || !strings.Contains(c.Title, "Runner: scale") {
		t.Errorf("a change that is ten times slower: %s %q", c.Conclusion, c.Title)
	}
	r.said(pr, "the runner's evidence does not answer its job: change is")
	close(r.hold)
}
