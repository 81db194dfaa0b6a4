package actions

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/ident"
)

// The sticky comment ends with a hidden line that holds the attempts so far. There is no other
// storage. The line is read only from our own comment, and it is trusted for showing and counting
// attempts, never for a verdict: everyone who may write to a repository can edit every comment in
// it.
const (
	historyOpen  = "<!-- kernelgate:history:"
	historyClose = " -->"
	maxHistory   = 30      // runs
	maxBlock     = 1 << 16 // bytes
)

// A record is the short form of one run.
type record struct {
	Kernel  string        `json:"k"` // display name
	Folder  string        `json:"f,omitempty"`
	Device  string        `json:"d,omitempty"` // as in change.KernelKey
	Head    string        `json:"h"`
	Attempt int           `json:"n"`
	Rule    string        `json:"r,omitempty"`
	Outcome gates.Outcome `json:"o,omitempty"` // empty if there is no verdict
	Reason  gates.Reason  `json:"y,omitempty"`
	Line    string        `json:"l,omitempty"`
	Ended   time.Time     `json:"e,omitzero"`
}

// remember appends the history to a comment: the newest runs, as many as fit.
func remember(body string, runs []change.Run) string {
	// A queued run has not started.
	runs = slices.DeleteFunc(slices.Clone(runs), func(r change.Run) bool { return r.Phase == change.Queued })
	var all []record
	for _, r := range runs[max(0, len(runs)-maxHistory):] {
		one := record{Kernel: r.Name, Folder: r.Folder, Device: r.Device, Head: r.Head, Attempt: r.Attempt, Rule: r.Rule, Ended: r.Ended.UTC().Truncate(time.Second)}
		if r.Phase == change.Done && r.Result != nil {
			one.Outcome, one.Reason, one.Line = r.Result.Outcome, r.Result.Reason, report.Clip(report.Plain(r.Result.Line), 200)
		}
		all = append(all, one)
	}
	for ; len(all) > 0; all = all[1:] {
		text, err := json.Marshal(all)
		if err != nil {
			panic(err) // texts, numbers and times always marshal
		}
		block := "\n" + historyOpen + base64.StdEncoding.EncodeToString(text) + historyClose + "\n"
		if len(body)+len(block) <= client.MaxCommentText {
			return body + block
		}
	}
	return body
}

// recall parses what remember wrote. It returns nil for everything else.
func recall(body string) []change.Run {
	body = strings.TrimRight(body, "\r\n")
	last := body[strings.LastIndexByte(body, '\n')+1:]
	text, opened := strings.CutPrefix(last, historyOpen)
	text, closed := strings.CutSuffix(text, historyClose)
	if !opened || !closed || len(text) > maxBlock {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	var all []record
	if json.Unmarshal(data, &all) != nil || len(all) > maxHistory {
		return nil
	}
	var runs []change.Run
	for _, one := range all {
		if !ident.IsCommit(one.Head) || one.Kernel == "" || one.Attempt < 1 || one.Attempt > maxAttempts+1 {
			continue
		}
		run := change.Run{KernelSpec: change.KernelSpec{Name: report.Clip(one.Kernel, 200), Folder: report.Clip(one.Folder, 500), Device: report.Clip(one.Device, 100), Rule: report.Clip(one.Rule, 200)}, Head: one.Head, Attempt: one.Attempt, Phase: change.Abandoned, Ended: one.Ended}
		if slices.Contains([]gates.Outcome{gates.Pass, gates.Defer, gates.Error}, one.Outcome) {
			run.Phase = change.Done
			run.Result = &change.Result{Outcome: one.Outcome, Reason: gates.Reason(report.Clip(string(one.Reason), 40)), Line: report.Clip(one.Line, 200)}
		}
		runs = append(runs, run)
	}
	return runs
}

// tried returns how many attempts at a run's kernel and commit the history contains.
func tried(runs []change.Run, run change.Run) int {
	n := 0
	for _, r := range runs {
		if r.Same(run) && r.Head == run.Head {
			n = max(n, r.Attempt)
		}
	}
	return n
}
