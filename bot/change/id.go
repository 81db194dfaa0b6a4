package change

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// A Kind is what sort of thing is under the gate.
type Kind string

const (
	Pull  Kind = "pr"
	Group Kind = "group" // a merge queue's candidate
	Push  Kind = "push"  // to the default branch: measured for the history, never blocked
	Sweep Kind = "sweep" // of the default branch's kernels, at a time of day; otherwise as a push
	Watch Kind = "watch" // of the default branch's kernels against a release or their best, at a time of day
)

// OnMain tells whether it is about commits of the default branch: measured for the history, and nothing to GitHub.
func (k Kind) OnMain() bool { return k == Push || k.Scheduled() }

// Scheduled tells whether the bot starts the change at a time of day. Such a change also measures kernels that nobody edited.
func (k Kind) Scheduled() bool { return k == Sweep || k == Watch }

// An ID names a change for good. Repositories are named by number, which
// survives a rename.
type ID struct {
	Kind   Kind
	Repo   int64
	Number int    // of a pull request
	SHA    string // of a group, a push or a sweep; of a watch it is a digest, see WatchID
}

// WatchID names the watch of a commit by the time at which it was due, because the same commit may be watched again.
func WatchID(repo int64, head string, due time.Time) ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", head, due.UnixNano()))
	return ID{Kind: Watch, Repo: repo, SHA: hex.EncodeToString(sum[:20])}
}

// String is the ID as a subject in the journal.
func (id ID) String() string {
	if id.Kind == Pull {
		return fmt.Sprintf("%s-%d-%d", id.Kind, id.Repo, id.Number)
	}
	return fmt.Sprintf("%s-%d-%s", id.Kind, id.Repo, id.SHA)
}

var idPattern = regexp.MustCompile(`^(?:(pr)-(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,8})|(group|push|sweep|watch)-(0|[1-9][0-9]{0,17})-([0-9a-f]+))$`)

// ParseID reads what String wrote.
func ParseID(text string) (ID, error) {
	m := idPattern.FindStringSubmatch(text)
	if m == nil || m[6] != "" && !ident.IsCommit(m[6]) {
		return ID{}, fmt.Errorf("%q names no change", text)
	}
	kind, repo := m[1], m[2]
	if kind == "" {
		kind, repo = m[4], m[5]
	}
	number, _ := strconv.Atoi(m[3]) // empty for all but pull requests
	n, err := strconv.ParseInt(repo, 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("%q names no change: %w", text, err)
	}
	return ID{Kind: Kind(kind), Repo: n, Number: number, SHA: m[6]}, nil
}

// jobID names one attempt at one kernel. The event that leads to it is part of
// the name, and its place among those that the event leads to, so that no job
// ever bears the name of another.
func (s *State) jobID(kernel string, place, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", s.Seq, place, kernel))
	return fmt.Sprintf("%s-%s-%d", s.ID, hex.EncodeToString(sum[:6]), attempt)
}

// OfJob is the change that a job belongs to.
func OfJob(job string) (ID, error) {
	words := strings.Split(job, "-")
	if len(words) != 5 {
		return ID{}, fmt.Errorf("%q names no job", job)
	}
	return ParseID(strings.Join(words[:3], "-"))
}
