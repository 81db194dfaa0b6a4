package submission

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A Static is what compilers say of an implementation that was not run.
type Static struct {
	Kernel    string              `json:"kernel"`
	Builds    bool                `json:"builds" doc:"Whether the candidate compiles."`
	Accepted  bool                `json:"accepted" doc:"Whether it is within the policy's bounds on resources. It says nothing about outputs and times."`
	Summary   string              `json:"summary"`
	Messages  []string            `json:"messages,omitempty" doc:"Messages of the compilers."`
	Resources []gates.ResourceRow `json:"resources,omitempty"`
	Code      string              `json:"machine_code,omitempty" doc:"Hash of the machine code."`
	Unchanged bool                `json:"unchanged,omitempty" doc:"The machine code is the baseline's."`
	Seen      []string            `json:"seen_before,omitempty" doc:"Handles of your submissions with the same machine code."`
}

// CheckStatic compiles an implementation without running it. It is free, and waits while something
// else is measured.
func (s *Service) CheckStatic(ctx context.Context, token string, asked Asked) (*Static, error) {
	asked, err := asked.ready()
	if err != nil {
		return nil, err
	}
	kernel, head, err := s.headOf(ctx, asked)
	if err != nil {
		return nil, err
	}
	results, err := os.MkdirTemp(s.dir, "static-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the build: %w", err)
	}
	defer os.RemoveAll(results)
	opt := s.opt
	opt.Head, opt.Kernels, opt.Results, opt.Static = head, []string{asked.Kernel}, results, true
	s.machine.Lock()
	defer s.machine.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out := &Static{Kernel: kernel.Manifest.Name}
	err = check.Run(ctx, opt, nobody{}, func(r check.Result) error {
		if r.Verdict == nil {
			out.Summary = "This host does not compile the kernel: " + r.LeftOut
			return nil
		}
		s.fill(out, token, r)
		return nil
	})
	return out, err
}

func (s *Service) fill(out *Static, token string, r check.Result) {
	v, e := r.Verdict, r.Evidence
	out.Summary, out.Accepted = v.Summary, v.Outcome == gates.Pass
	if c := e.Candidate; c != nil {
		out.Builds, out.Code = c.OK, c.Code
		for _, d := range c.Diagnostics {
			out.Messages = append(out.Messages, messageOf(d))
		}
		if !c.OK && len(out.Messages) == 0 {
			out.Messages = []string{c.Error}
		}
		out.Unchanged = e.Baseline != nil && c.Code != "" && c.Code == e.Baseline.Code
	}
	out.Resources = v.Resources
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Token == token && one.Result != nil && out.Code != "" && one.Result.Code == out.Code {
			out.Seen = append(out.Seen, one.Handle)
		}
	}
}

func messageOf(d gates.Diagnostic) string {
	if d.File == "" {
		return fmt.Sprintf("%s: %s", d.Severity, d.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", d.File, d.Line, d.Severity, d.Message)
}

// Text is the answer for a reader.
func (st *Static) Text() string {
	var b strings.Builder
	switch {
	case !st.Builds:
		fmt.Fprintf(&b, "It does not compile. %s\n", st.Summary)
	case st.Accepted:
		b.WriteString("It compiles, and its resources are within the policy. Outputs and times are not known.\n")
	default:
		fmt.Fprintf(&b, "It compiles. %s\n", st.Summary)
	}
	for _, m := range st.Messages {
		fmt.Fprintf(&b, "- %s\n", m)
	}
	b.WriteString(resourcesText(st.Resources))
	if st.Unchanged {
		b.WriteString("The machine code is the baseline's: it cannot be faster.\n")
	}
	if len(st.Seen) > 0 {
		fmt.Fprintf(&b, "The same machine code was submitted before: %s.\n", strings.Join(st.Seen, ", "))
	}
	return b.String()
}

// nobody hears of progress.
type nobody struct{}

func (nobody) Report(runners.Event) {}
