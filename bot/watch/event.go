package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/compat"
)

// An Event is one of Looked, Dropped, IssueWritten, IssueClosed, IssueDismissed, IssueRefused and
// Bisected. The journal keeps it forever.
type Event interface{ kind() string }

// Looked is a look at the kernel.
type Looked struct {
	Repo   int64  `json:"repo"`
	Folder string `json:"folder"`
	Device string `json:"device,omitempty"` // of the policy, if it asks for several
	Look   Look   `json:"look"`
}

// Dropped says that the kernel is not watched any more: somebody removed the kernel, or the configuration
// does not name it.
type Dropped struct{}

// IssueWritten says that the kernel's issue is open and shows the regression.
type IssueWritten struct {
	Number int    `json:"number"`
	Digest string `json:"digest"` // of its title and text
}

// IssueClosed says that the bot closed the issue, because the regression is over.
type IssueClosed struct{}

// IssueDismissed says that somebody else closed or deleted the issue.
type IssueDismissed struct {
	Deleted bool `json:"deleted,omitempty"`
}

// IssueRefused says that GitHub refuses to write the issue: the bot may not write issues, or the repository
// has issues turned off.
type IssueRefused struct {
	Status int    `json:"status"`
	Change string `json:"change"` // the watch that wanted to write
}

// Bisected says that the search for the commit that caused the regression has started or ended.
type Bisected struct {
	Bisection
}

func (Looked) kind() string         { return "looked" }
func (Dropped) kind() string        { return "unwatched" }
func (IssueWritten) kind() string   { return "issue_written" }
func (IssueClosed) kind() string    { return "issue_closed" }
func (IssueDismissed) kind() string { return "issue_dismissed" }
func (IssueRefused) kind() string   { return "issue_refused" }
func (Bisected) kind() string       { return "bisected" }

// Subject names a kernel in the journal, on a device of the policy if it asks for several. No change has such a name.
func Subject(repo int64, folder, device string) string {
	name := folder
	if device != "" {
		name += "\x00" + device // no folder has such a name
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s%d-%s", prefix, repo, hex.EncodeToString(sum[:8]))
}

const prefix = "watched-"

// IsSubject reports whether events under a name are those of a watched kernel.
func IsSubject(name string) bool { return strings.HasPrefix(name, prefix) }

// KindOf is the word under which an event is stored.
func KindOf(e Event) string { return e.kind() }

var vocabulary = compat.Vocabulary[Event]{KindOf: KindOf, About: "a watched kernel", All: []Event{Looked{}, Dropped{}, IssueWritten{}, IssueClosed{}, IssueDismissed{}, IssueRefused{}, Bisected{}}}

// Decode reads a stored event. It refuses one that a newer version wrote and this one does not know.
func Decode(from compat.Writer, kind string, data []byte) (Event, error) {
	return vocabulary.Decode(from, kind, data)
}

// Apply adds an event. Any event can follow any state: an event that does not fit the state changes only
// Seq.
func (s *State) Apply(seq uint64, e Event) {
	s.Seq = seq
	switch e := e.(type) {
	case Looked:
		s.Repo, s.Folder, s.Device = e.Repo, e.Folder, e.Device
		s.look(e.Look)
	case Dropped:
		if s.Last != nil {
			s.end(Unwatched, *s.Last)
		}
		s.Last, s.Sound, s.Levels, s.Noise = nil, nil, nil, 0
	case IssueWritten:
		s.Issue = Issue{Number: e.Number, Open: true, Digest: e.Digest}
	case IssueClosed:
		s.Issue = Issue{Number: s.Issue.Number}
		s.Ended = nil
	case IssueDismissed:
		s.dismissed(e.Deleted)
	case IssueRefused:
		s.Issue.Refused, s.Issue.RefusedIn = e.Status, e.Change
	case Bisected:
		if s.Regression == nil {
			return
		}
		if good, bad, ok := s.Regression.Range(); ok && e.Good == good && e.Bad == bad {
			r := *s.Regression
			r.Bisect = &e.Bisection
			s.Regression = &r
		}
	}
}

// dismissed records that a person closed or deleted the issue. A deleted issue cannot be opened again, so
// the next regression gets a new issue.
func (s *State) dismissed(deleted bool) {
	number := s.Issue.Number
	if deleted {
		number = 0
	}
	s.Issue = Issue{Number: number, Dismissed: s.Regression != nil}
	s.Ended = nil
}
