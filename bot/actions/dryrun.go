package actions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A dryRun is the HTTP transport of a job that only reports what it would write. It sends requests
// that read, and answers requests that write itself. Nothing changes at GitHub, whatever the job
// does.
type dryRun struct {
	next http.RoundTripper

	mu     sync.Mutex
	lastID int64
	things []*thing // in the order of their first write
}

// A thing is an object that GitHub would have, as the last write leaves it.
type thing struct {
	kind, on string // "status" "on 0123456789ab"
	key      string
	body     written
}

// written holds the fields of a status, a check, a comment or a reaction.
type written struct {
	Context     string `json:"context"`
	State       string `json:"state"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`

	Name       string `json:"name"`
	HeadSHA    string `json:"head_sha"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	DetailsURL string `json:"details_url"`
	Output     *struct {
		Title       string       `json:"title"`
		Summary     string       `json:"summary"`
		Text        string       `json:"text"`
		Annotations []annotation `json:"annotations"`
	} `json:"output"`

	Body    string `json:"body"`
	Content string `json:"content"`
}

type annotation struct {
	Path    string `json:"path"`
	Line    int    `json:"start_line"`
	Level   string `json:"annotation_level"`
	Title   string `json:"title"`
	Message string `json:"message"`
}

// firstDryID is above every id at GitHub, because attempts are counted in the order of ids.
const firstDryID = 1 << 60

func newDryRun() *dryRun { return &dryRun{next: http.DefaultTransport, lastID: firstDryID} }

// RoundTrip sends a request that reads, and records one that writes.
func (d *dryRun) RoundTrip(rq *http.Request) (*http.Response, error) {
	if rq.Method == http.MethodGet || rq.Method == http.MethodHead {
		return d.next.RoundTrip(rq)
	}
	var text []byte
	if rq.Body != nil {
		var err error
		if text, err = io.ReadAll(rq.Body); err != nil {
			return nil, fmt.Errorf("reading what would be written: %w", err)
		}
		rq.Body.Close()
	}
	id, err := d.keep(rq.Method, rq.URL.Path, text)
	if err != nil {
		return nil, err
	}
	status, answer := http.StatusOK, fmt.Sprintf(`{"id": %d}`, id)
	switch rq.Method {
	case http.MethodPost:
		status = http.StatusCreated
	case http.MethodDelete:
		status, answer = http.StatusNoContent, ""
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: rq,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)),
	}, nil
}

// keep records a write and assigns an id to the object.
func (d *dryRun) keep(method, path string, text []byte) (id int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastID++
	_, rest, _ := strings.Cut(path, "/repos/")
	part := append(strings.Split(rest, "/"), "", "", "", "", "", "")[2:] // without owner and name
	at := &thing{kind: method, on: path, key: path}
	var body written
	if len(text) > 0 {
		if err := json.Unmarshal(text, &body); err != nil {
			return 0, fmt.Errorf("reading what would be written to %s: %w", path, err)
		}
	}
	switch {
	case part[0] == "statuses":
		at = &thing{kind: "status", on: fmt.Sprintf("on %.12s", part[1]), key: "status " + part[1] + " " + body.Context}
	case part[0] == "check-runs" && method == http.MethodPost:
		at = &thing{kind: "check", on: fmt.Sprintf("on %.12s", body.HeadSHA), key: "check " + strconv.FormatInt(d.lastID, 10)}
	case part[0] == "check-runs":
		at = &thing{kind: "check", on: "that is there, " + part[1], key: "check " + part[1]}
	case part[3] == "reactions" || part[4] == "reactions":
		at = &thing{kind: "reaction", on: "to comment " + part[2], key: path + " " + body.Content}
	case part[0] == "issues" && part[1] == "comments":
		at = &thing{kind: "comment", on: "that is there, " + part[2], key: "comment " + part[2]}
	case part[0] == "issues" && part[2] == "comments":
		at = &thing{kind: "comment", on: "on #" + part[1], key: "comment " + strconv.FormatInt(d.lastID, 10)}
	}
	if i := slices.IndexFunc(d.things, func(t *thing) bool { return t.key == at.key }); i >= 0 {
		at = d.things[i]
	} else {
		d.things = append(d.things, at)
	}
	if method == http.MethodDelete {
		body.Body = "(deleted)"
	}
	at.body.merge(body)
	return d.lastID, nil
}

// merge overwrites fields with those of a later write. Annotations accumulate, as at GitHub.
func (w *written) merge(later written) {
	for _, field := range []struct {
		into *string
		text string
	}{
		{&w.Context, later.Context}, {&w.State, later.State}, {&w.Description, later.Description}, {&w.TargetURL, later.TargetURL},
		{&w.Name, later.Name}, {&w.HeadSHA, later.HeadSHA}, {&w.Status, later.Status}, {&w.Conclusion, later.Conclusion}, {&w.DetailsURL, later.DetailsURL},
		{&w.Body, later.Body}, {&w.Content, later.Content},
	} {
		*field.into = cmp.Or(field.text, *field.into)
	}
	if later.Output != nil {
		if w.Output != nil {
			later.Output.Annotations = append(slices.Clip(w.Output.Annotations), later.Output.Annotations...)
		}
		w.Output = later.Output
	}
}

// String lists everything that GitHub would have.
func (d *dryRun) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.things) == 0 {
		return "Dry run: nothing would be written to GitHub.\n"
	}
	var b strings.Builder
	b.WriteString("Dry run: nothing was written to GitHub. This is what it would have:\n")
	for _, t := range d.things {
		fmt.Fprintf(&b, "\n─── %s ───\n", t.heading())
		for _, text := range t.body.texts() {
			if text = strings.TrimSpace(text); text != "" {
				b.WriteString("\n" + text + "\n")
			}
		}
	}
	return b.String()
}

func (t *thing) heading() string {
	w := t.body
	switch t.kind {
	case "status":
		return fmt.Sprintf("status %q %s: %s", w.Context, t.on, w.State)
	case "check":
		return fmt.Sprintf("check %q %s: %s", w.Name, t.on, strings.TrimSpace(w.Status+" "+w.Conclusion))
	case "reaction":
		return fmt.Sprintf("reaction %q %s", w.Content, t.on)
	}
	return t.kind + " " + t.on
}

// texts returns the paragraphs that people would read.
func (w written) texts() []string {
	list := []string{w.Description, w.TargetURL}
	if w.Output != nil {
		list = append(list, w.Output.Title, shown(w.Output.Summary), shown(w.Output.Text))
		for _, a := range w.Output.Annotations {
			list = append(list, fmt.Sprintf("%s at %s:%d: %s\n%s", a.Level, a.Path, a.Line, a.Title, a.Message))
		}
	}
	return append(list, w.DetailsURL, shown(w.Body))
}

// shown removes the lines that GitHub hides, in which jobs store data.
func shown(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "<!-- kernelgate:") || !strings.HasSuffix(trimmed, "-->") {
			b.WriteString(line)
		}
	}
	return b.String()
}
