package checkout

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A reader is a git cat-file process that answers one query after the other. Starting one takes a
// hundred times longer than a query, so a mirror keeps some of them between uses.
//
// Queries name objects by their ids, and refs by their whole names. For these git caches nothing
// that it has read, whoever made it, and finds objects that were fetched after it started.
type reader struct {
	how     string // --batch or --batch-check
	cmd     *exec.Cmd
	explain func(error) error
	in      io.WriteCloser
	out     *bufio.Reader
	of      os.FileInfo // the repository's folder when the reader was started
	pool    *readers    // nil if it is ended after use
	ctx     context.Context
	spare   func() bool // cancels the kill at the end of ctx
	asked   int
	rest    *time.Timer
}

// Limits of a pool: the number of readers of each kind, how long each stays, and after how many
// queries it is retired.
const (
	maxResting = 16
	restingFor = 2 * time.Second
	maxAsked   = 10_000
	askedAhead = 64 // queries sent ahead of git's answers: they fit into a pipe
)

// readers is a pool of readers. A nil pool keeps none.
type readers struct {
	mu      sync.Mutex
	resting map[string][]*reader // by how
	keep    time.Duration
}

func newReaders() *readers { return &readers{resting: map[string][]*reader{}, keep: restingFor} }

// borrow returns a git process for exclusive use until ctx ends or giveBack is called.
func (r *Repo) borrow(ctx context.Context, how string) (*reader, error) {
	here, err := os.Stat(r.dir)
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", context.Cause(ctx))
	}
	for rd := r.readers.take(how); rd != nil; rd = r.readers.take(how) {
		rd.hold(ctx)
		if os.SameFile(rd.of, here) && rd.awake() {
			return rd, nil
		}
		_ = rd.giveBack(errors.New("it has ended")) // it was killed; start a new one
	}
	return r.startReader(ctx, how, here)
}

func (r *Repo) startReader(ctx context.Context, how string, here os.FileInfo) (rd *reader, err error) {
	rd = &reader{how: how, of: here, pool: r.readers, ctx: ctx}
	rd.cmd, rd.explain = r.command(context.WithoutCancel(ctx), "cat-file", how)
	if r.readers != nil {
		// Nobody reads the messages of an idle process. If git cannot start at all, a second
		// command reports why.
		rd.cmd.Stderr = nil
		rd.explain = func(err error) error {
			if err == nil {
				return nil
			}
			_, why := r.git(rd.ctx, "rev-parse", "--git-dir")
			return cmp.Or(why, fmt.Errorf("git cat-file: %w", err))
		}
	}
	if rd.in, err = rd.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := rd.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	rd.out = bufio.NewReader(out)
	if err := rd.explain(rd.cmd.Start()); err != nil {
		return nil, err
	}
	rd.hold(ctx)
	return rd, nil
}

// hold makes the end of ctx kill the process.
func (rd *reader) hold(ctx context.Context) {
	rd.ctx = ctx
	rd.spare = context.AfterFunc(ctx, rd.kill)
}

func (rd *reader) kill() { _ = rd.cmd.Process.Kill() }

// awake reports whether the process still answers. It asks for an empty name, which is always
// missing.
func (rd *reader) awake() bool {
	if _, err := io.WriteString(rd.in, "\n"); err != nil {
		return false
	}
	line, err := rd.out.ReadString('\n')
	return err == nil && line == " missing\n"
}

// giveBack returns the reader to the pool. After a failure the state of its output is unknown, so
// the process is ended. The result is the clearest error available.
func (rd *reader) giveBack(failed error) error {
	inTime := rd.spare()
	if failed == nil && inTime && rd.asked <= maxAsked && rd.pool.put(rd) {
		return nil
	}
	rd.in.Close()
	if failed != nil {
		rd.kill() // nobody reads any further
	}
	err := rd.cmd.Wait()
	switch {
	case rd.ctx.Err() != nil:
		return fmt.Errorf("git cat-file: %w", context.Cause(rd.ctx))
	case errors.As(failed, new(Refused)):
		return failed
	case failed != nil && err != nil && rd.cmd.ProcessState.Exited():
		return rd.explain(err) // git's message is clearer than the fact that it ended
	case failed != nil:
		return failed
	}
	return rd.explain(err)
}

func (p *readers) take(how string) *reader {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.resting[how]
	if len(list) == 0 {
		return nil
	}
	rd := list[len(list)-1]
	p.resting[how] = list[:len(list)-1]
	rd.rest.Stop()
	return rd
}

// put keeps a reader for a while, if the pool has room.
func (p *readers) put(rd *reader) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.resting[rd.how]) >= maxResting {
		return false
	}
	p.resting[rd.how] = append(p.resting[rd.how], rd)
	rd.rest = time.AfterFunc(p.keep, func() { p.retire(rd) })
	return true
}

// retire ends a reader that nobody has used for a while.
func (p *readers) retire(rd *reader) {
	p.mu.Lock()
	list := p.resting[rd.how]
	i := slices.Index(list, rd)
	if i >= 0 {
		p.resting[rd.how] = slices.Delete(list, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 { // otherwise another goroutine has just taken it
		rd.in.Close()
		_ = rd.cmd.Wait() // it has answered everything
	}
}

// An answer is git's description of an object.
type answer struct {
	id, kind string
	size     int64
}

// each asks for objects and calls see for every answer in order. An object that does not exist has
// no id. After an answer in --batch mode, see must read the object with content.
func (rd *reader) each(names []string, see func(i int, a answer) error) error {
	for sent, i := 0, 0; i < len(names); i++ {
		if i == sent {
			sent = min(i+askedAhead, len(names))
			if _, err := io.WriteString(rd.in, strings.Join(names[i:sent], "\n")+"\n"); err != nil {
				return fmt.Errorf("asking git cat-file: %w", err)
			}
			rd.asked += sent - i
		}
		a, err := rd.next(names[i])
		if err != nil {
			return err
		}
		if err := see(i, a); err != nil {
			return err
		}
	}
	return nil
}

func (rd *reader) next(name string) (a answer, err error) {
	line, err := rd.out.ReadString('\n')
	if err != nil {
		return a, fmt.Errorf("git cat-file ended early: %w", err)
	}
	if line == name+" missing\n" {
		return a, nil
	}
	words := strings.Fields(line)
	if len(words) == 3 {
		a.id, a.kind = words[0], words[1]
		if a.size, err = strconv.ParseInt(words[2], 10, 64); err == nil && a.size >= 0 {
			return a, nil
		}
	}
	return answer{}, fmt.Errorf("git cat-file says %q of %s", strings.TrimSpace(line), name)
}

// content lets take read an object after its answer.
func (rd *reader) content(a answer, take func(io.Reader) error) error {
	content := &io.LimitedReader{R: rd.out, N: a.size}
	if err := take(content); err != nil {
		return err
	}
	if content.N > 0 {
		return fmt.Errorf("git cat-file ended early: %w", io.ErrUnexpectedEOF)
	}
	if _, err := rd.out.Discard(1); err != nil { // a newline
		return fmt.Errorf("git cat-file ended early: %w", err)
	}
	return nil
}
