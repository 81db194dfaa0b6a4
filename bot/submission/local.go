package submission

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A Local is the service of one repository on this disk. Open makes one; Run measures, one submission after
// another.
type Local struct {
	*Service
	opt  check.Options // base, policy and how to measure; the same for every submission
	root string        // of the repository
	dir  string        // of the submissions
	lock *os.File

	claimFile claimFile
	machine   sync.Mutex // held while something is compiled or measured, which must not disturb each other
	wake      chan struct{}

	described kernelCache
	served    []string // owners of what was measured, the last one at the end
}

// Open opens the submissions of the repository that contains the folder of the options. Only one
// program may have them open.
func Open(ctx context.Context, opt check.Options, log *slog.Logger) (*Local, error) {
	repo, err := checkout.Open(ctx, cmp.Or(opt.Dir, "."))
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	if opt.Base == "" {
		if opt.Base, err = repo.DefaultBase(ctx); err != nil {
			return nil, usage.Error{Err: err}
		}
	}
	if _, err := repo.Resolve(ctx, opt.Base); err != nil {
		return nil, usage.Error{Err: err}
	}
	results := filepath.Join(repo.Dir(), "results")
	l := &Local{opt: opt, root: repo.Dir(), dir: filepath.Join(results, "submissions"), wake: make(chan struct{}, 1)}
	l.Service = newService(l, opt.Now, log)
	l.claimFile.file = filepath.Join(l.dir, "claims.jsonl")
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of submissions: %w", err)
	}
	if err := check.Ignore(results); err != nil {
		return nil, err
	}
	if l.lock, err = os.OpenFile(filepath.Join(l.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("opening the submissions: %w", err)
	}
	if err := syscall.Flock(int(l.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		l.lock.Close()
		return nil, usage.Errorf("another kernelgate mcp works in %s (use it, or end it)", l.root)
	}
	if err := l.load(); err != nil {
		l.lock.Close()
		return nil, err
	}
	return l, nil
}

// Close lets another program open the submissions.
func (l *Local) Close() error { return l.lock.Close() }

const stateFile = "submission.json"

// load reads what earlier programs left. What they did not finish is done again.
func (l *Local) load() error {
	files, err := filepath.Glob(filepath.Join(l.dir, "*", stateFile))
	if err != nil {
		return err
	}
	for _, file := range files {
		one, err := readState(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		switch one.State {
		case Running:
			one.State = Queued
		case Done:
			one = one.short()
		}
		l.all = append(l.all, one)
	}
	slices.SortStableFunc(l.all, func(a, b *Submission) int { return a.Created.Compare(b.Created) })
	l.poke()
	return nil
}

func readState(file string) (*Submission, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	one := new(Submission)
	if err := json.Unmarshal(data, one); err != nil {
		return nil, fmt.Errorf("reading a submission: %s: %w (remove its folder)", file, err)
	}
	return one, nil
}

// keep writes a submission, as a whole.
func (l *Local) keep(ctx context.Context, one *Submission) error {
	if one.State == Queued { // its runs can be repeated: git does not show these refs as branches, and pushes none of them
		if _, err := l.git(ctx, "update-ref", refPrefix+one.Handle, one.Head); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(one, "", "  ")
	if err == nil {
		err = l.write(one.Handle, stateFile, data)
	}
	if err != nil {
		return fmt.Errorf("storing the submission: %w", err)
	}
	return nil
}

// write replaces a file of a submission.
func (l *Local) write(handle, name string, data []byte) error {
	dir := filepath.Join(l.dir, handle)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func (l *Local) kept(_ context.Context, _, handle string) (*Submission, error) {
	one, err := readState(filepath.Join(l.dir, handle, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return one, err
}

func (l *Local) file(_ context.Context, one *Submission, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(l.dir, one.Handle, name))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return string(text), nil
}

// evidence of a submission; nil where it is not there any more.
func (l *Local) evidence(_ context.Context, one *Submission) (*gates.Evidence, error) {
	data, err := os.ReadFile(filepath.Join(one.Folder, "evidence.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading earlier evidence: %w", err)
	}
	return gates.ParseEvidence("evidence.json", data)
}

func (l *Local) claims(context.Context, *Submission) (claimList, error) {
	all, err := l.claimFile.read()
	return claimList{all: all}, err
}

// claim is only called by the one submission that is measured.
func (l *Local) claim(_ context.Context, _ *Submission, _ claimList, one claim) error {
	return l.claimFile.add(one)
}

func (l *Local) start(context.Context, *Submission) error {
	l.poke()
	return nil
}

func (l *Local) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (l *Local) Run(ctx context.Context) error {
	for {
		one := l.next()
		if one == nil {
			select {
			case <-l.wake:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		err := l.work(ctx, one)
		if ctx.Err() != nil {
			return nil // it stays unfinished, and is done again by the next program
		}
		if err != nil {
			return err
		}
	}
}

// next starts the submission whose turn it is.
func (l *Local) next() (one *Submission) {
	l.change(func() {
		if queue := l.queue(); len(queue) > 0 {
			one = queue[0]
			one.State, l.served = Running, append(slices.DeleteFunc(l.served, func(token string) bool { return token == one.Token }), one.Token)
			l.running[one.id()] = runners.Event{Text: "starting"}
			one = new(*one)
		}
	})
	return one
}

// queue is what waits, in the order in which it will be measured. Owners take turns, beginning with the
// one who was not served for the longest time; the submissions of one owner keep their order. So
// nobody waits for all submissions of another.
func (l *Local) queue() []*Submission {
	type place struct{ lap, turn int } // the n-th submission of its owner, and the owner's turn
	places, laps := map[*Submission]place{}, map[string]int{}
	var queue []*Submission
	for _, one := range l.all {
		if one.State == Queued {
			places[one] = place{laps[one.Token], slices.Index(l.served, one.Token)}
			laps[one.Token]++
			queue = append(queue, one)
		}
	}
	slices.SortStableFunc(queue, func(a, b *Submission) int {
		return cmp.Or(cmp.Compare(places[a].lap, places[b].lap), cmp.Compare(places[a].turn, places[b].turn))
	})
	return queue
}

func (l *Local) ahead(one *Submission) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := slices.IndexFunc(l.queue(), func(other *Submission) bool { return other.Handle == one.Handle && other.Token == one.Token })
	if slices.ContainsFunc(l.all, func(other *Submission) bool { return other.State == Running }) {
		n++
	}
	return max(0, n)
}

// enter does nothing: Open has read everything.
func (l *Local) enter(context.Context, string) error { return nil }

// term is always the same: nobody else has this repository open.
func (l *Local) term() (uint64, error) { return 0, nil }

func (l *Local) whileLeading(ctx context.Context) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

// kernels lists those of the base branch.
func (l *Local) kernels(ctx context.Context, _ string) ([]string, error) {
	opt := l.opt
	opt.Head = l.opt.Base
	return check.KernelNames(ctx, opt)
}

// kernel reads a kernel once for each state of the base.
func (l *Local) kernel(ctx context.Context, _, name string) (kernel, error) {
	base, err := l.git(ctx, "rev-parse", "--verify", l.opt.Base+"^{commit}")
	if err != nil {
		return kernel{}, err
	}
	return l.described.get(name+"\x00"+base, func() (kernel, error) {
		opt := l.opt
		opt.Head, opt.Kernels = base, []string{name}
		k, err := check.Describe(ctx, opt)
		return kernel{Described: k}, err
	})
}

// draft finds or makes the commit of what is asked.
func (l *Local) draft(ctx context.Context, k kernel, one *Submission) (err error) {
	if one.Asked.Ref == "" {
		one.Head, err = checkout.CommitFiles(ctx, l.root, k.Commit, k.Folder, one.Asked.Files)
		return err
	}
	repo, err := checkout.Open(ctx, l.root)
	if err != nil {
		return err
	}
	if one.Head, err = repo.Resolve(ctx, one.Asked.Ref); err != nil {
		return usage.Error{Err: fmt.Errorf("ref: %w", err)}
	}
	return nil
}

// git runs a command in the repository and returns its output.
func (l *Local) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", l.root}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
