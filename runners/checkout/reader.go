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

// A reader is a git cat-file that answers one question after the other. To start one takes
// a hundred times longer than an answer of it, so a mirror keeps some between looks.
//
// It is asked for objects by their ids, and for refs by their whole names: then git
// keeps nothing of what it has read, whoever made it, and finds what was fetched
// since it was started.
type reader struct {
	how     string // --batch or --batch-check
	cmd     *exec.Cmd
	explain func(error) error
	in      io.WriteCloser
	out     *bufio.Reader
	of      os.FileInfo // the repository's folder when it was started
	pool    *readers    // nil where it is ended after use
	ctx     context.Context
	spare   func() bool // takes back that it is killed when ctx ends
	asked   int
	rest    *time.Timer
}

// What a pool keeps: so many of each kind, for so long, and none that was asked more than
// so often.
const (
	maxResting = 16
	restingFor = 2 * time.Second
	maxAsked   = 10_000
	askedAhead = 64 // names that git has not answered to yet: they fit into a pipe
)

// readers is a pool of them. A nil one keeps none.
type readers struct {
	mu      sync.Mutex
	resting map[string][]*reader // by how
	keep    time.Duration
}

func newReaders() *readers { return &readers{resting: map[string][]*reader{}, keep: restingFor} }

// borrow is a git process for whoever asks until ctx ends or it is given back. Nobody else has it.
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
		_ = rd.giveBack(errors.New("it has ended")) // somebody has killed it; there is another way
	}
	return r.startReader(ctx, how, here)
}

func (r *Repo) startReader(ctx context.Context, how string, here os.FileInfo) (rd *reader, err error) {
	rd = &reader{how: how, of: here, pool: r.readers, ctx: ctx}
	rd.cmd, rd.explain = r.command(context.WithoutCancel(ctx), "cat-file", how)
	if r.readers != nil {
		// Nobody listens to one that rests; what keeps git from starting at all, another says too.
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

// hold has it killed when ctx ends.
func (rd *reader) hold(ctx context.Context) {
	rd.ctx = ctx
	rd.spare = context.AfterFunc(ctx, rd.kill)
}

func (rd *reader) kill() { _ = rd.cmd.Process.Kill() }

// awake tells whether it still answers: nothing is the name of nothing.
func (rd *reader) awake() bool {
	if _, err := io.WriteString(rd.in, "\n"); err != nil {
		return false
	}
	line, err := rd.out.ReadString('\n')
	return err == nil && line == " missing\n"
}

// giveBack lets others have it. After a failure nobody knows what it would say next, and it is
// ended; the error is the clearest that there is.
func (rd *reader) giveBack(failed error) error {
	inTime := rd.spare()
	if failed == nil && inTime && rd.asked <= maxAsked && rd.pool.put(rd) {
		return nil
	}
	rd.in.Close()
	if failed != nil {
		rd.kill() // nobody reads on
	}
	err := rd.cmd.Wait()
	switch {
	case rd.ctx.Err() != nil:
		return fmt.Errorf("git cat-file: %w", context.Cause(rd.ctx))
	case errors.As(failed, new(Refused)):
		return failed
	case failed != nil && err != nil && rd.cmd.ProcessState.Exited():
		return rd.explain(err) // git's own word is clearer than that it ended
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

// put keeps a reader for a while, if there is room.
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

// retire ends a reader that nobody has asked for.
func (p *readers) retire(rd *reader) {
	p.mu.Lock()
	list := p.resting[rd.how]
	i := slices.Index(list, rd)
	if i >= 0 {
		p.resting[rd.how] = slices.Delete(list, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 { // else somebody has just taken it
		rd.in.Close()
		_ = rd.cmd.Wait() // it has answered everything
	}
}

// An answer is what git says of an object.
type answer struct {
	id, kind string
	size     int64
}

// each asks for objects, and has every answer seen to in its order. One that is not there
// has no id. After the answer of a --batch, the object is to be read with content.
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

// content lets take read an object that was answered for.
func (rd *reader) content(a answer, take func(io.Reader) error) error {
	content := &io.LimitedReader{R: rd.out, N: a.size}
	if err := take(content); err != nil {
		return err
	}
	if content.N > 0 {
		return fmt.Errorf("git cat-file ended early: %w", io.ErrUnexpectedEOF)
	}
	if _, err := rd.out.Discard(1); err != nil { // a line's end
		return fmt.Errorf("git cat-file ended early: %w", err)
	}
	return nil
}
