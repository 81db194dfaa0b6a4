// Package search is what a search has found: the tuning of a candidate, or the commit that made a kernel slower or wrong. A
// runner sends the [Report] as an artifact. It informs people; no verdict depends on it. Package perform carries searches out.
package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// A Kind is what was searched for.
type Kind string

const (
	Tune   Kind = "tune"
	Bisect Kind = "bisect"
)

// The names of the artifacts with the report, and with the log of a tuning search.
const (
	ReportFile = "search.json"
	LogFile    = "search.jsonl"
)

// A Report is the result of a search. Its texts are plain: escape them before you show them.
type Report struct {
	Schema   string  `json:"schema"`
	Kind     Kind    `json:"kind"`
	Kernel   string  `json:"kernel"`
	Device   string  `json:"device"`
	Found    bool    `json:"found"`          // a winner that the gate passes, or a commit
	Headline string  `json:"headline"`       // one sentence or two
	Text     string  `json:"text"`           // a table with lines around it, for a fixed-width font
	Diff     string  `json:"diff,omitempty"` // the change to commit
	Seconds  float64 `json:"seconds"`        // of measuring
	// First is the first bad commit of a bisection. Proven means that the stated error rate holds.
	First  *checkout.Commit `json:"first,omitempty"`
	Proven bool             `json:"proven,omitempty"`
	// Last is the last good commit before First. Between is the number of commits between the two, which
	// could not be judged. Error is the stated error rate.
	Last    string  `json:"last,omitempty"`
	Between int     `json:"between,omitempty"`
	Error   float64 `json:"error,omitempty"`
}

const schema = "kernelgate/search/v1"

// Limits of a report.
const (
	maxReport   = 1 << 20
	maxText     = 48_000
	maxHeadline = 1_000
)

// Write writes the report to a file, without what exceeds the limits.
func (r *Report) Write(file string) error {
	r.Schema = schema
	r.Headline, r.Text, r.Diff = clip(r.Headline, maxHeadline), clip(r.Text, maxText), clip(r.Diff, maxText)
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// clip cuts a text after a whole character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// Parse reads a report. It refuses a report that no search can have written.
func Parse(data []byte) (*Report, error) {
	if len(data) > maxReport {
		return nil, fmt.Errorf("reading the report of a search: it has %d bytes (at most %d)", len(data), maxReport)
	}
	var r Report
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("reading the report of a search: %w", err)
	}
	bad := func(field, why string) (*Report, error) {
		return nil, fmt.Errorf("reading the report of a search: %s %s", field, why)
	}
	const more = len("…")
	switch {
	case d.More():
		return bad("the file", "has more text after the report")
	case r.Schema != schema:
		return bad("schema", fmt.Sprintf("is %q (this program reads %q; run the bot and the runner in the same version)", clip(r.Schema, 60), schema))
	case r.Kind != Tune && r.Kind != Bisect:
		return bad("kind", fmt.Sprintf("is %q", clip(string(r.Kind), 60)))
	case r.Headline == "" || len(r.Headline) > maxHeadline+more:
		return bad("headline", fmt.Sprintf("has %d bytes", len(r.Headline)))
	case len(r.Text) > maxText+more || len(r.Diff) > maxText+more:
		return bad("text or diff", fmt.Sprintf("has more than %d bytes", maxText))
	case r.Diff != "" && (r.Kind != Tune || !r.Found):
		return bad("diff", "must be empty if no winner was found")
	case (r.First != nil) != (r.Kind == Bisect && r.Found):
		return bad("first", "must be set if a bisection has found a commit, and must be empty otherwise")
	}
	return &r, nil
}
