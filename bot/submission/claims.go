package submission

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/attempts"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// A claim is one machine code that was claimed, as the file of claims has it. It is written after the
// build and before anything was compared or timed, and never removed: a claim that is wrong, or that
// was cancelled, counts as one that was measured.
type claim struct {
	Handle string    `json:"handle"`
	Token  string    `json:"token"`
	Kernel string    `json:"kernel"`
	Day    string    `json:"day"`
	Code   string    `json:"code"` // machine code of both sides with the rules, see codeName
	At     time.Time `json:"at"`
}

// A claimList is claims in the order in which they were written.
type claimList struct {
	all []claim
	seq uint64 // of the last one, where a journal keeps them
}

// errRaced says that a claim was written since the claims were read.
var errRaced = errors.New("there is a newer claim")

// claimFile is the file with all claims of a repository.
type claimFile struct{ file string }

func (c claimFile) read() ([]claim, error) {
	f, err := os.Open(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the claims: %w", err)
	}
	defer f.Close()
	var all []claim
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var one claim
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("reading the claims: %s:%d: %w (the budget is unknown without them: repair the line, or remove the file to start again)", c.file, n, err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

func (c claimFile) add(one claim) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("counting the claim: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("counting the claim: %w", err)
	}
	return nil
}

// list is the list of machine codes that one token claims of one kernel on one day.
func (c claim) list() string { return strings.Join([]string{c.Token, c.Kernel, c.Day}, "\x00") }

// attemptOf numbers the last claim by the rule that holds for changes: a list stands for a pull
// request and for its author.
func attemptOf(all []claim) runners.Attempt {
	var marks []attempts.Mark
	numbers := map[string]int{}
	for _, c := range all {
		if numbers[c.list()] == 0 {
			numbers[c.list()] = len(numbers) + 1
		}
		marks = append(marks, attempts.Mark{Pull: numbers[c.list()], Code: c.Code, Sources: "sources of " + c.Code, Author: c.list(), Listed: c.Code})
	}
	return attempts.Count(marks)
}

// codesOf counts the distinct machine codes of a list.
func codesOf(all []claim, list string) (codes []string) {
	for _, c := range all {
		if c.list() == list && !slices.Contains(codes, c.Code) {
			codes = append(codes, c.Code)
		}
	}
	return codes
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// advice is what to do when the budget is spent.
const advice = "The error rate of today is spent for this kernel. Go on with probes, which are free, and claim the best candidate after midnight UTC; or open a pull request, where a person decides."

// budgetOf returns what is left of a list.
func budgetOf(all []claim, list claim, gate *policy.PerformanceGate) *result.Budget {
	claimed := len(codesOf(all, list.list()))
	b := &result.Budget{Day: list.Day, Claimed: claimed, Left: untimedClaims - claimed, NextShare: gates.CodeShare(claimed + 1)}
	if gate != nil {
		b.Left, b.Rounds = gates.MostCodes(gate)-claimed, gates.FirstRounds(gate, claimed+1)
	}
	if b.Left <= 0 {
		b.Left, b.Advice = 0, advice
	}
	return b
}

// untimedClaims is how many claims a day has for a kernel that is not timed. They spend no error rate,
// but each draws other secret cases, and an author must not go on until none of them hits.
const untimedClaims = 44

// codeName names machine code with what it is judged by.
func codeName(job runners.Job, c runners.Code) string {
	return c.Hash(job.Manifest.Name, job.Provenance.Manifest, job.Provenance.Policy)
}

// A record counts one claim. It is a runners.Record.
type record struct {
	s    *Service
	one  *Submission
	at   time.Time
	job  runners.Job
	gate *policy.PerformanceGate

	counted bool
	spent   bool // nothing was left
	attempt runners.Attempt
}

// claimOf is the claim of a submission at a time, without a machine code.
func claimOf(one *Submission, at time.Time) claim {
	return claim{Handle: one.Handle, Token: one.Token, Kernel: one.Kernel, Day: dayOf(at), At: at.UTC()}
}

// errSpent ends a claim that has no budget.
var errSpent = errors.New("the error rate of today is spent")

// Earlier counts the claim, unless the same code was claimed before. What was found then holds: the
// same code has no second chance. Only where it was left undecided, more rounds are an attempt.
func (r *record) Earlier(ctx context.Context, c runners.Code) (runners.Earlier, error) {
	if c.Baseline == c.Candidate {
		return runners.Earlier{}, nil // nothing is measured
	}
	for {
		earlier, err := r.count(ctx, c)
		if !errors.Is(err, errRaced) {
			return earlier, err
		}
	}
}

func (r *record) count(ctx context.Context, c runners.Code) (runners.Earlier, error) {
	mine := claimOf(r.one, r.at)
	mine.Code = codeName(r.job, c)
	list, err := r.s.place.claims(ctx, r.one)
	if err != nil {
		return runners.Earlier{}, err
	}
	if counted, ok := attemptOfHandle(list.all, mine); ok {
		r.attempt, r.counted = counted, true // this run began before the program ended, or at another runner
		return r.s.earlierThan(ctx, list.all, mine)
	}
	out, err := r.s.earlierThan(ctx, list.all, mine)
	if err != nil || out.Evidence != nil && !out.Again {
		return out, err
	}
	known := slices.Contains(codesOf(list.all, mine.list()), mine.Code)
	if !known && budgetOf(list.all, mine, r.gate).Left == 0 {
		r.spent = true
		return runners.Earlier{}, errSpent
	}
	if err := r.s.place.claim(ctx, r.one, list, mine); err != nil {
		return runners.Earlier{}, err
	}
	r.attempt, r.counted = attemptOf(append(slices.Clone(list.all), mine)), true
	return out, nil
}

// attemptOfHandle is the attempt that a submission has begun already at the machine code.
func attemptOfHandle(all []claim, mine claim) (runners.Attempt, bool) {
	i := slices.IndexFunc(all, func(c claim) bool { return c.Handle == mine.Handle && c.Token == mine.Token && c.Code == mine.Code })
	if i < 0 {
		return runners.Attempt{}, false
	}
	return attemptOf(all[:i+1]), true
}

// Begin returns the attempt that Earlier has counted.
func (r *record) Begin(context.Context, runners.Code) (runners.Attempt, error) {
	if !r.counted {
		return runners.Attempt{}, errors.New("the claim was not counted")
	}
	return r.attempt, nil
}

// earlierThan returns what the last finished claim of the same code has left, and whether more rounds
// may be added to it. An error of the runner leaves nothing.
func (s *Service) earlierThan(ctx context.Context, all []claim, mine claim) (runners.Earlier, error) {
	for _, c := range slices.Backward(all) {
		if c.Code != mine.Code || c.Token != mine.Token || c.Handle == mine.Handle {
			continue
		}
		done, err := s.whole(ctx, c.Token, c.Handle)
		if bad := (usage.Error{}); errors.As(err, &bad) {
			continue // it was removed
		}
		if err != nil {
			return runners.Earlier{}, err
		}
		if done.State != Done || done.Result == nil || done.Result.Outcome == gates.Error {
			continue
		}
		e, err := s.place.evidence(ctx, done)
		if err != nil {
			return runners.Earlier{}, err
		}
		if e != nil {
			return runners.Earlier{Evidence: e, Again: done.Result.Reason == gates.ReasonInconclusive, Head: e.Provenance.Head.SHA}, nil
		}
	}
	return runners.Earlier{}, nil
}
