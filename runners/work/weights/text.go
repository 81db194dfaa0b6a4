package weights

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Section is the weights of a use as a manifest has them; "" where no launch is of a shape.
func (u *Use) Section() string {
	if len(u.Shapes) == 0 {
		return ""
	}
	var launches []string
	for _, s := range u.Shapes {
		launches = append(launches, s.Name+": "+figure(s.Launches))
	}
	all, micros := u.Matched()
	var b strings.Builder
	fmt.Fprintf(&b, "weights:\n  launches: {%s}\n", strings.Join(launches, ", "))
	if len(u.Warm) > 0 {
		fmt.Fprintf(&b, "  warm: [%s]\n", strings.Join(u.Warm, ", "))
	}
	if u.StepTime > 0 && micros > 0 {
		fmt.Fprintf(&b, "  kernel: %sus\n  step: %sus\n", figure(min(micros, u.StepTime)), figure(u.StepTime))
	}
	if rest := rounded(u.Launches - all); rest > 0 && len(u.Unmatched) > 0 {
		fmt.Fprintf(&b, "  unmatched: %s\n", figure(rest))
	}
	fmt.Fprintf(&b, "  tool: %s\n  trace: %s\n", u.Tool, u.Digest)
	return b.String()
}

// figure writes a number as YAML reads it, without an exponent.
func figure(x float64) string { return strconv.FormatFloat(rounded(x), 'f', -1, 64) }

// maxUnmatched is how many kinds of launches without a shape are listed.
const maxUnmatched = 10

// Text says what the trace shows, for people.
func (u *Use) Text() string {
	var b strings.Builder
	where := ""
	if u.Device != "" {
		where = " on " + u.Device
	}
	steps := number.Plural(u.Steps, "step")
	if u.StepTime > 0 {
		steps += " of " + number.Time(u.StepTime)
	}
	fmt.Fprintf(&b, "%s%s: %s per step, %s", u.Kernel, where, counted(u.Launches), number.Time(u.Micros))
	if u.StepTime > 0 {
		fmt.Fprintf(&b, " (%s of the step)", number.Share(u.Micros/u.StepTime))
	}
	fmt.Fprintf(&b, ", in %s\n", steps)
	for _, s := range u.Shapes {
		fmt.Fprintf(&b, "  %s: %s, %s each, %s of the kernel's time\n", s.Shape, counted(s.Launches), number.Time(s.Micros/s.Launches), number.Share(s.Micros/u.Micros))
	}
	for i, n := range u.Unmatched {
		if i == maxUnmatched {
			fmt.Fprintf(&b, "  and %d more kinds of launches that no shape has\n", len(u.Unmatched)-i)
			break
		}
		b.WriteString("  " + n.text(u) + "\n")
	}
	if u.Outside > 0 {
		fmt.Fprintf(&b, "  %s outside of every step, not counted\n", counted(float64(u.Outside)))
	}
	return b.String()
}

func (n Unmatched) text(u *Use) string {
	share := fmt.Sprintf("%s of the launches (%s of the kernel's time)", number.Share(n.Launches/u.Launches), number.Share(n.Micros/u.Micros))
	grid := fmt.Sprintf("the grid %d×%d×%d", n.Grid[0], n.Grid[1], n.Grid[2])
	switch {
	case len(n.Several) > 0:
		return fmt.Sprintf("%s have %s, which the shapes %s have in common (record the trace with record_shapes=True, or keep one of them)", share, grid, strings.Join(n.Several, " and "))
	case len(n.Dims) > 0:
		return fmt.Sprintf("%s have %s, which no shape of the manifest has (%s; add it)", share, n.Dims, grid)
	}
	return fmt.Sprintf("%s have %s, which no shape of the manifest has (add the shape)", share, grid)
}

// counted is a number of launches, which need not be whole.
func counted(launches float64) string {
	if launches == 1 {
		return "1 launch"
	}
	return figure(launches) + " launches"
}

// Write replaces the weights of a manifest's text, or adds them. Comments and everything else stay as they are.
func (u *Use) Write(file string, text []byte) ([]byte, error) {
	section := u.Section()
	lines := bytes.SplitAfter(text, []byte("\n"))
	var out bytes.Buffer
	replaced, inside := false, false
	for _, line := range lines {
		if top(line) {
			inside = bytes.HasPrefix(line, []byte("weights:"))
			if inside && !replaced {
				out.WriteString(section)
				replaced = true
			}
		}
		if !inside {
			out.Write(line)
		}
	}
	if !replaced {
		if n := out.Len(); n > 0 && out.Bytes()[n-1] != '\n' {
			out.WriteByte('\n')
		}
		out.WriteString(section)
	}
	if _, err := manifest.Parse(file, out.Bytes()); err != nil {
		return nil, fmt.Errorf("the weights cannot be written into %s (put them there by hand): %w", file, err)
	}
	return out.Bytes(), nil
}

// top reports whether a line begins something at the top of the file: a key or a comment.
func top(line []byte) bool {
	return len(line) > 0 && !bytes.ContainsAny(line[:1], " \t\r\n")
}
