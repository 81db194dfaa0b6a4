package submission

import (
	"context"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
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

// CheckStatic compiles an implementation without running it. It is free.
func (s *Service) CheckStatic(ctx context.Context, token string, asked Asked) (*Static, error) {
	asked, err := asked.ready()
	if err != nil {
		return nil, err
	}
	return answer(ctx, s, token, func(ctx context.Context) (*Static, error) { return s.checkStatic(ctx, token, asked) })
}

func (s *Service) checkStatic(ctx context.Context, token string, asked Asked) (*Static, error) {
	k, err := s.place.kernel(ctx, token, asked.Kernel)
	if err != nil {
		return nil, err
	}
	if err := checkNames(k.Described, asked.Files); err != nil {
		return nil, err
	}
	out, err := s.place.static(ctx, k, &Submission{Token: token, Asked: asked, Kernel: k.Manifest.Name, Base: k.Commit})
	if err != nil {
		return nil, err
	}
	out = new(*out)
	out.Seen = s.seen(token, out.Code)
	return out, nil
}

// seen lists the submissions of an owner with a machine code.
func (s *Service) seen(owner, code string) (handles []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Token == owner && one.Result != nil && code != "" && one.Result.Code == code {
			handles = append(handles, one.Handle)
		}
	}
	return handles
}

// fill takes over what a build has shown.
func (out *Static) fill(v *gates.Verdict, e *gates.Evidence) {
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
