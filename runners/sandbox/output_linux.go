package sandbox

import (
	"fmt"
	"io"
	"sync"
)

// A budget is the output that all streams of one program may still write.
type budget struct {
	mu   sync.Mutex
	left int64
	over func()
}

// limited passes writes on until the budget is spent.
type limited struct {
	*budget
	to io.Writer
}

// Write reports the whole of p as written, so that the pipe is emptied until the program is dead.
func (l limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := min(int64(len(p)), l.left)
	l.left -= keep
	if keep > 0 {
		if _, err := l.to.Write(p[:keep]); err != nil {
			return 0, err
		}
	}
	if keep < int64(len(p)) {
		l.over()
	}
	return len(p), nil
}

// connectOutput makes the program's output count against Limits.Output. The writers see one write at a time.
func (p *Process) connectOutput(s Spec) {
	b := &budget{left: p.limits.Output, over: func() {
		p.stop(errOutput, func(r *Result) {
			r.OutputTruncated = true
			r.Refused = append(r.Refused, fmt.Sprintf("output cut at %s", sizeText(p.limits.Output)))
		})
	}}
	if s.Stdout != nil {
		p.cmd.Stdout = limited{b, s.Stdout}
	}
	if s.Stderr != nil {
		p.cmd.Stderr = limited{b, s.Stderr}
	}
}
