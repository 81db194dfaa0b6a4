package runners

import (
	"errors"
	"fmt"
)

// A Search asks for more than one comparison of a job's kernel. Exactly one field is set. Package
// runners/work/search carries it out; its result is a report and no verdict.
type Search struct {
	Tune   *TuneSearch   `json:"tune,omitempty"`
	Bisect *BisectSearch `json:"bisect,omitempty"`
}

// Check refuses a search that has neither field set, or both.
func (s *Search) Check() error {
	switch {
	case s == nil:
		return nil
	case (s.Tune == nil) == (s.Bisect == nil):
		return errors.New("search: it must be either tune or bisect")
	case s.Tune != nil && (s.Tune.Candidates < 1 || s.Tune.Seconds <= 0):
		return fmt.Errorf("search.tune: %d candidates in %v seconds", s.Tune.Candidates, s.Tune.Seconds)
	case s.Bisect != nil:
		return s.Bisect.check()
	}
	return nil
}

// A TuneSearch asks for the fastest point of the space that the candidate's manifest declares. The
// candidate's own variant is the incumbent.
type TuneSearch struct {
	Shapes     []string `json:"shapes,omitempty"` // none means the policy's
	Variants   []string `json:"variants,omitempty"`
	Proposer   string   `json:"proposer"` // a built-in one
	Candidates int      `json:"candidates"`
	Seconds    float64  `json:"seconds"` // of measuring
}

// A BisectSearch asks for the commit that made the kernel slower or wrong. The baseline of the job is the
// good commit, and its candidate is the last commit of the range.
type BisectSearch struct {
	Shapes  []string       `json:"shapes,omitempty"` // none means the policy's
	Rounds  int            `json:"rounds,omitempty"` // of one commit; 0 means the usual number
	Good    string         `json:"good"`             // as it was asked for
	GoodSHA string         `json:"good_sha"`
	Commits []BisectCommit `json:"commits"` // after the good one, oldest first
	Sides   []Side         `json:"-"`       // states of the kernel, each once
}

// A BisectCommit is one commit of the range.
type BisectCommit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"`
	Side    int    `json:"side"`           // index of its state of the kernel
	Skip    string `json:"skip,omitempty"` // why it cannot be judged; then it has no side
}

func (s *BisectSearch) check() error {
	if len(s.Commits) == 0 {
		return errors.New("search.bisect: there is no commit")
	}
	for i, c := range s.Commits {
		if c.Skip == "" && (c.Side < 0 || c.Side >= len(s.Sides)) {
			return fmt.Errorf("search.bisect.commits[%d].side: %d, and there are %d", i, c.Side, len(s.Sides))
		}
	}
	return nil
}
