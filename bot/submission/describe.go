package submission

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// A Description says what is asked of a kernel.
type Description struct {
	Kernels     []string          `json:"kernels,omitempty" doc:"The kernels of the repository, if none was named."`
	Kernel      string            `json:"kernel,omitempty"`
	Description string            `json:"description,omitempty"`
	Mode        string            `json:"mode,omitempty" doc:"cpu, cuda or command."`
	Entry       string            `json:"entry,omitempty" doc:"The function to implement."`
	Base        string            `json:"base_commit,omitempty" doc:"What a candidate is compared with."`
	Arguments   []Argument        `json:"arguments,omitempty"`
	Shapes      []ShapeAsked      `json:"shapes,omitempty" doc:"Public shapes. Claims are compared on secret ones, too."`
	Tolerance   *gates.Tolerance  `json:"tolerance,omitempty" doc:"An element is bad if |error| > abs + rel*|want|."`
	Goal        []string          `json:"goal,omitempty" doc:"What the policy asks, in sentences."`
	Device      *result.Device    `json:"device,omitempty"`
	NoDevice    string            `json:"no_device,omitempty" doc:"Why this host cannot run the kernel."`
	Files       map[string]string `json:"files,omitempty" doc:"The files of the base branch that a submission may replace."`
	Budget      *result.Budget    `json:"budget,omitempty"`
}

// An Argument is a parameter of the kernel function.
type Argument struct {
	Name   string   `json:"name"`
	DType  string   `json:"dtype,omitempty"`
	Access string   `json:"access" doc:"in, out, inout, scalar, struct or absent."`
	Shape  []string `json:"shape,omitempty" doc:"Axes in row-major order, as expressions over the dims."`
}

// A ShapeAsked is a public problem size.
type ShapeAsked struct {
	Shape    string   `json:"shape"`
	Dims     string   `json:"dims"`
	Roofline *float64 `json:"roofline_us,omitempty" doc:"Time in microseconds that no kernel can beat on this device. Absent where the limits are not known."`
}

// Describe says what is asked of a kernel, or lists the kernels if none is named.
func (s *Service) Describe(ctx context.Context, token, name string) (*Description, error) {
	return answer(ctx, s, token, func(ctx context.Context) (*Description, error) { return s.describe(ctx, token, name) })
}

func (s *Service) describe(ctx context.Context, token, name string) (*Description, error) {
	if name == "" {
		names, err := s.place.kernels(ctx, token)
		if err != nil {
			return nil, err
		}
		return &Description{Kernels: names}, nil
	}
	k, err := s.place.kernel(ctx, token, name)
	if err != nil {
		return nil, err
	}
	m, rule := k.Manifest, k.Rule()
	d := &Description{
		Kernel: m.Name, Description: m.Description, Mode: string(m.Mode), Entry: m.Entry, Base: k.Commit, NoDevice: k.NoDevice, Files: k.Files,
		Tolerance: &gates.Tolerance{Abs: m.Tolerance.Abs, Rel: m.Tolerance.Rel}, Goal: goalOf(k.Described),
	}
	for _, a := range m.Arguments {
		one := Argument{Name: a.Name, DType: string(a.DType), Access: string(a.Access)}
		for _, axis := range a.Shape {
			one.Shape = append(one.Shape, axis.String())
		}
		d.Arguments = append(d.Arguments, one)
	}
	for _, shape := range k.Shapes {
		one := ShapeAsked{Shape: shape.Name, Dims: shape.Dims}
		if floor := gates.Floor(k.Device, shape); floor > 0 {
			one.Roofline = &floor
		}
		d.Shapes = append(d.Shapes, one)
	}
	if k.Device.Name != "" {
		d.Device = &result.Device{Kind: k.Device.Kind, Name: k.Device.Name, Arch: k.Device.Arch}
	}
	asker := &Submission{Token: token, Kernel: m.Name, Asked: Asked{Kernel: name}, Work: k.work()}
	list, err := s.place.claims(ctx, asker)
	if err != nil {
		return nil, err
	}
	d.Budget = budgetOf(list.all, claimOf(asker, s.clock()), rule.Gates.Performance)
	return d, nil
}

// goalOf is what the policy asks of a change to the kernel, gate by gate.
func goalOf(k check.Described) []string {
	var lines []string
	for _, a := range k.Rule().Asked() {
		if !a.Decides {
			a.Text += " (informs only)"
		}
		lines = append(lines, fmt.Sprintf("%s: %s", a.Gate, a.Text))
	}
	return lines
}

// Text is the description for a reader.
func (d *Description) Text() string {
	var b strings.Builder
	if d.Kernel == "" {
		fmt.Fprintf(&b, "Kernels of this repository: %s. Describe one of them next.\n", strings.Join(d.Kernels, ", "))
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s (mode %s, entry %s)\n\nArguments:\n", d.Kernel, d.Description, d.Mode, d.Entry)
	for _, a := range d.Arguments {
		fmt.Fprintf(&b, "- %s: %s %s [%s]\n", a.Name, a.Access, a.DType, strings.Join(a.Shape, ", "))
	}
	b.WriteString("\nPublic shapes:\n")
	for _, s := range d.Shapes {
		fmt.Fprintf(&b, "- %s: %s", s.Shape, s.Dims)
		if s.Roofline != nil {
			fmt.Fprintf(&b, " (no kernel is faster than %.3g µs)", *s.Roofline)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nAn element is bad if |error| > %g + %g*|want|.\n\nGoal:\n", d.Tolerance.Abs, d.Tolerance.Rel)
	for _, g := range d.Goal {
		fmt.Fprintf(&b, "- %s\n", g)
	}
	if d.Device != nil {
		fmt.Fprintf(&b, "\nDevice: %s\n", d.Device.Name)
	} else {
		fmt.Fprintf(&b, "\n%s\n", d.NoDevice)
	}
	fmt.Fprintf(&b, "Claims left today: %d of %d.\n", d.Budget.Left, d.Budget.Left+d.Budget.Claimed)
	return b.String()
}

// A Tried is one submission in a history.
type Tried struct {
	Handle  string        `json:"handle"`
	Intent  result.Intent `json:"intent"`
	State   State         `json:"state"`
	Outcome gates.Outcome `json:"outcome,omitempty" doc:"Absent until it is done."`
	Reason  gates.Reason  `json:"reason,omitempty"`
	Summary string        `json:"summary,omitempty"`
	Code    string        `json:"machine_code,omitempty"`
	Created time.Time     `json:"created"`
}

// A History is what a token has tried.
type History struct {
	Kernel string  `json:"kernel,omitempty"`
	Tried  []Tried `json:"tried" doc:"The newest first."`
}

// maxHistory bounds the answer.
const maxHistory = 200

// History lists the submissions of a token, of one kernel or of all.
func (s *Service) History(ctx context.Context, token, kernel string) (*History, error) {
	return answer(ctx, s, token, func(context.Context) (*History, error) { return s.history(token, kernel), nil })
}

func (s *Service) history(token, kernel string) *History {
	h := &History{Kernel: kernel, Tried: []Tried{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Backward(s.all) {
		if one.Token != token || one.Intent == onlyCompile || kernel != "" && kernel != one.Kernel && kernel != one.Asked.Kernel && kernel != path.Base(one.Asked.Kernel) {
			continue
		}
		t := Tried{Handle: one.Handle, Intent: one.Intent, State: one.State, Created: one.Created}
		if r := one.Result; r != nil {
			t.Outcome, t.Reason, t.Summary, t.Code = r.Outcome, r.Reason, r.Summary, r.Code
		}
		if h.Tried = append(h.Tried, t); len(h.Tried) == maxHistory {
			break
		}
	}
	return h
}

// Text is the history for a reader.
func (h *History) Text() string {
	if len(h.Tried) == 0 {
		return "Nothing was submitted yet.\n"
	}
	var b strings.Builder
	for _, t := range h.Tried {
		outcome := string(t.State)
		if t.Outcome != "" {
			outcome = fmt.Sprintf("%s %s", t.Outcome, t.Reason)
		}
		fmt.Fprintf(&b, "- %s, %s: %s %s\n", t.Handle, t.Intent, strings.TrimSpace(outcome), t.Summary)
	}
	return b.String()
}
