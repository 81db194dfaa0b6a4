package submission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kernelgate/kernelgate/bot/compat"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// Subjects in the journal. Each submission has its own, which is also the name of its job. An owner has an
// index of submissions, and a kernel has a list of all claims of it. No change has such a subject.
const (
	subjectPrefix = "submission-"
	indexPrefix   = "submissions-"
	claimsPrefix  = "submissionclaims-"
)

// Kinds of events.
const (
	listedKind    = "submission_listed"
	submittedKind = "submission_submitted"
	endedKind     = "submission_ended"
	claimedKind   = "submission_claimed"
)

// subjectOf has the owner in it, so that nobody can take the place of another's submission.
func subjectOf(one *Submission) string { return subject(one.Token, one.Handle) }

func subject(owner, handle string) string { return subjectPrefix + short(owner) + "-" + handle }

// IsSubmission reports whether a job is a submission's.
func IsSubmission(job string) bool { return strings.HasPrefix(job, subjectPrefix) }

// A listed event says that an owner has a submission. It is written before the submission is, so that
// every submission is listed.
type listed struct {
	Handle string `json:"handle"`
}

// read applies the events of a submission; nil if there are none.
func (h *Hosted) read(ctx context.Context, subject string) (*Submission, error) {
	var one *Submission
	_, err := h.Journal.ReplayRun(ctx, subject, func(e journal.Event) error {
		next, err := decode(e.Writer, e.Kind, e.Data)
		if err == nil {
			next.seq, one = e.Seq, next
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", subject, err)
	}
	return one, nil
}

// decode reads an event, which has the whole submission.
func decode(from compat.Writer, kind string, data []byte) (*Submission, error) {
	if kind != submittedKind && kind != endedKind {
		return nil, from.Unknown(fmt.Sprintf("an event of the kind %q", kind))
	}
	one := new(Submission)
	return one, from.Decode(kind, data, one)
}

// keep writes a submission that is new, with its result if that is known already.
func (h *Hosted) keep(ctx context.Context, one *Submission) error {
	if one.decided != nil {
		return h.finish(ctx, one, "", 0, *one.decided)
	}
	r, err := h.rollOf(one.Token)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := h.list(ctx, r, one); err != nil {
		return err
	}
	if err := h.append(ctx, one, submittedKind); err != nil {
		r.read = false // perhaps it was written, and nobody would start it
		return err
	}
	return nil
}

// append writes an event of a submission. Whoever writes has seen its last one.
func (h *Hosted) append(ctx context.Context, one *Submission, kind string) error {
	seq, err := h.Journal.Append(ctx, subjectOf(one), one.seq, kind, one)
	if err == nil {
		one.seq = seq
	}
	return err
}

// list adds a submission to the index of its owner. The roll is locked.
func (h *Hosted) list(ctx context.Context, r *roll, one *Submission) error {
	if err := h.fill(ctx, r, one.Token); err != nil {
		return err
	}
	seq, err := h.Journal.Append(ctx, indexPrefix+short(one.Token), r.seq, listedKind, listed{one.Handle})
	if err != nil {
		r.read = false // perhaps it was written
		return err
	}
	r.seq = seq
	return nil
}

// kept reads a submission of an owner.
func (h *Hosted) kept(ctx context.Context, owner, handle string) (*Submission, error) {
	return h.read(ctx, subject(owner, handle))
}

// rollOf is the roll of an owner in this term. Nothing of an earlier one holds: another bot has led since.
func (h *Hosted) rollOf(owner string) (*roll, error) {
	h.entering.Lock()
	defer h.entering.Unlock()
	term, err := h.Journal.Term()
	if err != nil {
		return nil, err
	}
	if term != h.ledIn {
		h.ledIn, h.rolls = term, map[string]*roll{}
		h.change(func() { h.all = nil; clear(h.running) })
		h.branches.forget()
		h.tips.forget()
	}
	if h.rolls[owner] == nil {
		h.rolls[owner] = new(roll)
	}
	return h.rolls[owner], nil
}

func (h *Hosted) term() (uint64, error) { return h.Journal.Term() }

func (h *Hosted) whileLeading(ctx context.Context) (context.Context, func(), error) {
	return h.Journal.WhileLeading(ctx)
}

// enter reads what an owner has submitted, once in a term.
func (h *Hosted) enter(ctx context.Context, owner string) error {
	r, err := h.rollOf(owner)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return h.fill(ctx, r, owner)
}

// fill reads the newest submissions of an owner, unless they were read. The roll is locked.
func (h *Hosted) fill(ctx context.Context, r *roll, owner string) error {
	if r.read {
		return nil
	}
	var handles []string
	seq, err := h.Journal.ReplayRun(ctx, indexPrefix+short(owner), func(e journal.Event) error {
		var l listed
		err := e.Writer.Decode(e.Kind, e.Data, &l)
		if handles = append(handles, l.Handle); len(handles) > 2*(maxHistory+maxQueued) {
			handles = slices.Clone(handles[maxHistory+maxQueued:])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the submissions of %s: %w", owner, err)
	}
	var all []*Submission
	for _, handle := range handles[max(0, len(handles)-maxHistory-maxQueued):] {
		one, err := h.kept(ctx, owner, handle)
		if err != nil {
			return err
		}
		if one == nil || slices.ContainsFunc(all, func(other *Submission) bool { return other.Handle == handle }) {
			continue // the bot was killed before it was submitted
		}
		if one.State == Done {
			one = one.short()
		}
		all = append(all, one)
	}
	h.entering.Lock()
	defer h.entering.Unlock()
	if h.rolls[owner] != r {
		return fmt.Errorf("reading the submissions of %s: %w", owner, journal.ErrNotLeading)
	}
	h.change(func() {
		h.all = slices.DeleteFunc(h.all, func(one *Submission) bool { return one.Token == owner })
		h.all = append(h.all, all...)
		h.forget(owner)
	})
	r.read, r.seq = true, seq
	return nil
}

// claimsOf is the subject of all claims of a kernel, whoever made them.
func claimsOf(one *Submission) string {
	return claimsPrefix + strconv.FormatInt(one.Work.Repo, 10) + "-" + short(one.Work.Folder)
}

func (h *Hosted) claims(ctx context.Context, of *Submission) (claimList, error) {
	known := h.claimed.of(claimsOf(of))
	known.mu.Lock()
	defer known.mu.Unlock()
	list := known.list
	_, err := h.Journal.ReplayRunAfter(ctx, claimsOf(of), list.seq, func(e journal.Event) error {
		var c claim
		err := e.Writer.Decode(e.Kind, e.Data, &c)
		list.all, list.seq = append(list.all, c), e.Seq
		return err
	})
	if err != nil {
		return claimList{}, fmt.Errorf("reading the claims: %w", err)
	}
	known.list = list
	return claimList{slices.Clip(list.all), list.seq}, nil
}

// A claimCache has the claims of the kernels that were asked about last, so that only newer ones are read. Claims are never
// changed or removed, so those of an earlier term hold.
type claimCache struct {
	once  sync.Once
	mu    sync.Mutex
	known *lru.Cache[string, *knownClaims]
}

type knownClaims struct {
	mu   sync.Mutex // held while newer ones are read: a kernel's history is in memory once
	list claimList
}

func (c *claimCache) of(subject string) *knownClaims {
	c.once.Do(func() {
		known, err := lru.New[string, *knownClaims](maxDescribed)
		if err != nil {
			panic(err) // the size is a constant
		}
		c.known = known
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known.Get(subject); ok {
		return known
	}
	known := new(knownClaims)
	c.known.Add(subject, known)
	return known
}

func (h *Hosted) claim(ctx context.Context, of *Submission, after claimList, one claim) error {
	_, err := h.Journal.Append(ctx, claimsOf(of), after.seq, claimedKind, one)
	if errors.Is(err, journal.ErrConflict) {
		return errRaced
	}
	if err != nil {
		return fmt.Errorf("counting the claim: %w", err)
	}
	return nil
}

// file reads the report or the log.
func (h *Hosted) file(ctx context.Context, one *Submission, name string) (string, error) {
	blob := map[string]string{ReportFile: one.Work.Report, LogFile: one.Work.Log}[name]
	if blob == "" {
		return "", usage.Errorf("submission %s has no such file", one.Handle)
	}
	data, err := h.Artifacts.Read(ctx, blob)
	if errors.Is(err, journal.ErrNotFound) {
		return "", usage.Errorf("the file is not kept any more")
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return string(data), nil
}

// evidence of a submission; nil where it is not there any more. Its claims still count.
func (h *Hosted) evidence(ctx context.Context, one *Submission) (*gates.Evidence, error) {
	if one.Work == nil || one.Work.Evidence == "" {
		return nil, nil
	}
	data, err := h.Artifacts.Read(ctx, one.Work.Evidence)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading earlier evidence: %w", err)
	}
	return gates.ParseEvidence(one.Work.Evidence, data)
}

// pack stores a text under its hash, so that storing it twice has no effect.
func (h *Hosted) pack(ctx context.Context, what string, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	name := what + "-" + hex.EncodeToString(sum[:])
	if err := h.Artifacts.Pack(ctx, name, data); err != nil {
		return "", fmt.Errorf("storing the %s of a submission: %w", what, err)
	}
	return name, nil
}

// packJSON is pack of a value.
func (h *Hosted) packJSON(ctx context.Context, what string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("storing the %s of a submission: %w", what, err)
	}
	return h.pack(ctx, what, data)
}
