package actions

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kernelgate/kernelgate/bot/github/client"
)

// A workflow writes a job's log, in which some lines are commands.
type workflow struct {
	out    io.Writer
	random func() string
	dry    bool // show commands instead of executing them: GitHub would apply them to the change
}

var (
	escapeMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// levels maps the annotation levels of a check to those of a log.
var levels = map[string]string{"failure": "error", "warning": "warning", "notice": "notice"}

// annotate attaches a message to a line of a file.
func (w *workflow) annotate(a client.Annotation) {
	if w.dry {
		w.note(fmt.Sprintf("%s: %s:%d: %s: %s", levels[a.Level], a.Path, a.StartLine, a.Title, a.Message))
		return
	}
	fmt.Fprintf(w.out, "::%s file=%s,line=%d,endLine=%d,title=%s::%s\n", levels[a.Level], escapeProperty.Replace(a.Path),
		a.StartLine, a.EndLine, escapeProperty.Replace(a.Title), escapeMessage.Replace(a.Message))
}

// say attaches a message to the job.
func (w *workflow) say(level, message string) {
	if w.dry {
		w.note(level + ": " + message)
		return
	}
	fmt.Fprintf(w.out, "::%s title=kernelgate::%s\n", level, escapeMessage.Replace(message))
}

// note writes a log line that is not a command.
func (w *workflow) note(line string) { fmt.Fprintln(w.out, inert(line)) }

// print writes text that cannot contain a command, because a report contains texts of the change.
func (w *workflow) print(text string) {
	word := w.random()
	fmt.Fprintf(w.out, "::stop-commands::%s\n%s\n::%s::\n", word, strings.TrimRight(text, "\n"), word)
}

// appendTo appends to a file that GitHub reads after the step. It does nothing if there is no file.
func appendTo(file, text string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("writing for the job: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing for the job: %w", err)
	}
	return nil
}

// setOutputs sets the outputs for later steps, one per line.
func setOutputs(file string, o End) error {
	var b strings.Builder
	for _, v := range []struct{ name, value string }{{"verdict", string(o.Verdict)}, {"reason", o.Reason}, {"results", o.Results}} {
		if strings.ContainsAny(v.value, "\r\n") {
			return fmt.Errorf("the output %s has more than one line: %q", v.name, v.value)
		}
		fmt.Fprintf(&b, "%s=%s\n", v.name, v.value)
	}
	return appendTo(file, b.String())
}
