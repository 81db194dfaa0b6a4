package attempts

import (
	"strconv"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/runners"
)

// A Mark is what a program without a journal writes down before the first round of an attempt. All
// logs follow from the marks of a repository in the order in which they were written.
type Mark struct {
	Pull          int    // the pull request; 0 for a merge group, which adds no machine code
	Code, Sources string // names of the logs of the machine code and of the sources
	Author        string // name of the author's list of machine codes against the same baseline
	Listed        string // the machine code in the lists; see Key.Listed
}

// MarkOf is the mark of an attempt at a run.
func MarkOf(s *change.State, run change.Run, c runners.Code) Mark {
	key := KeyOf(s.ID, s.Plan, run)
	return Mark{s.ID.Number, key.OfCode(c), key.OfSources(run.Sources, c), key.OfAuthor(s.Facts.Author, c), key.Listed(c)}
}

// Count numbers the last mark by the rules of Store.Start.
func Count(marks []Mark) (attempt runners.Attempt) {
	logs := map[string]*Log{}
	logOf := func(name string) *Log {
		if logs[name] == nil {
			logs[name] = NewLog()
		}
		return logs[name]
	}
	for i, m := range marks {
		codeNumber := 1
		if m.Pull > 0 {
			for _, list := range []*Log{logOf("pull " + strconv.Itoa(m.Pull)), logOf(m.Author)} {
				list.list(m.Listed)
				codeNumber = max(codeNumber, list.IndexOf(m.Listed))
			}
		}
		attempt = runners.Attempt{}
		for _, l := range []*Log{logOf(m.Sources), logOf(m.Code)} {
			begun, _ := l.Next(LeaseRef{Token: uint64(i)}, attempt.Number, codeNumber, "")
			l.begin(begun)
			attempt = runners.Attempt{Number: begun.Attempt, CodeNumber: begun.CodeNumber}
		}
	}
	return attempt
}
