package demo

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/local"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A stage is one pull request of the story, with the verdict that it gets on real hardware.
type stage struct {
	name, title string
	outcome     gates.Outcome
	reason      gates.Reason
}

// stages returns the history of the kernel.
func stages() []stage {
	return []stage{
		{"stage1", "Decode K and V once, into contiguous tiles", gates.Pass, ""},
		{"stage2", "Use the vector units for QK and PV", gates.Pass, ""},
		{"stage3a", "Reuse the score buffer for P", gates.Defer, gates.ReasonTooSlow},
		{"stage3b", "Fuse the softmax in registers", gates.Defer, gates.ReasonCorrectness},
	}
}

// rebench is the command that the writer may run and the reader may not.
const rebench = "/rebench rounds=2"

// A story plays the demo and prints it at the same time.
type story struct {
	*world
	*local.Teller
	opt    Options
	lines  []string // of the summary
	wrong  int
	merged []string     // stages
	open   *embedded.PR // deferred, and free to play with
}

func (s *story) tell() error {
	all := stages()
	if err := s.stage(all[0]); err != nil {
		return err
	}
	if err := s.docs(); err != nil {
		return err
	}
	for _, next := range all[1:] {
		if err := s.stage(next); err != nil {
			return err
		}
	}
	return nil
}

// files returns what a stage changes. The first stage rewrites the source. The others add a variant
// in a separate file and make it the default: a change provides its own implementation.
func (s *story) files(st stage) (map[string]string, error) {
	text, err := shipped(st.name + ".c")
	if err != nil || len(s.merged) == 0 {
		return map[string]string{source: text}, err
	}
	manifest, err := shipped("kernel.yaml")
	if err == nil {
		manifest, err = withVariant(manifest, s.merged, st.name)
	}
	return map[string]string{folder + "/" + st.name + ".c": text, folder + "/kernel.yaml": manifest}, err
}

// stage opens a pull request and shows the verdict.
func (s *story) stage(st stage) error {
	files, err := s.files(st)
	if err != nil {
		return err
	}
	pr, err := s.propose(st.name, st.title, files)
	if err != nil {
		return err
	}
	if len(files) > 1 {
		s.Note("it adds %s.c and makes it the default variant in kernel.yaml; the base still decides tolerance, shapes and reference", st.name)
	}
	check, a, err := s.verdict(pr, st, 0)
	if err != nil {
		return err
	}
	if a.Outcome == gates.Pass {
		s.merged = append(s.merged, st.name)
		return s.merge(pr, "; the runner measures main too, for the history")
	}
	if err := pr.Merge(writer); err == nil {
		return fmt.Errorf("#%d was deferred, and the protection let it through", pr.Number())
	} else {
		s.Note("%s tries to merge it anyway; GitHub refuses: %s", writer, refusal(err))
	}
	if s.open == nil {
		s.open = pr
		return s.again(pr, st, check, a)
	}
	return nil
}

// refusal returns GitHub's message without the status before it.
func refusal(err error) string {
	text := err.Error()
	return strings.TrimLeft(text[strings.LastIndex(text, ": ")+1:], " 0123456789")
}

func (s *story) propose(branch, title string, files map[string]string) (*embedded.PR, error) {
	if _, err := s.Repo.PushCommit(embedded.Commit{Branch: branch, Files: files, Message: title, Author: writer}); err != nil {
		return nil, err
	}
	pr, err := s.Repo.OpenPR(embedded.PROptions{Title: title, Head: branch, Author: writer})
	if err != nil {
		return nil, err
	}
	s.chapter("#%d %s (%s)", pr.Number(), title, branch)
	s.Note("%s opens %s", writer, pr.URL())
	return pr, nil
}

// verdict waits for a verdict and prints it.
func (s *story) verdict(pr *embedded.PR, st stage, earlier int64) (embedded.Check, doneRun, error) {
	check, err := s.concluded(pr, earlier)
	if err != nil {
		return check, doneRun{}, err
	}
	a, err := s.lastRun(pr)
	if err != nil {
		return check, a, err
	}
	if err := s.commented(pr, a); err != nil {
		return check, a, err
	}
	s.Note("the check %q concludes %s; attempt %d was measured in %.0f s by the runner %q", check.Name, check.Conclusion, a.Attempt, a.Ended.Sub(a.Begun).Seconds(), a.Runner)
	if earlier == 0 {
		// Do not mention report.md: the bot's reports are comments.
		s.Say("\n%s\n", s.opt.Render(a.verdict))
	} else {
		st.name = "again"
		s.Note("%s", report.OneLine(a.verdict))
	}
	s.Note("the report is a comment on %s", pr.URL())
	line, expected := summary(st, a.verdict)
	if !expected {
		s.wrong++
	}
	s.lines = append(s.lines, line)
	return check, a, nil
}

func (s *story) merge(pr *embedded.PR, then string) error {
	if err := pr.Merge(writer); err != nil {
		return fmt.Errorf("#%d has passed, and cannot be merged: %w", pr.Number(), err)
	}
	s.Note("%s merges it%s", writer, then)
	return nil
}

// again requests another measurement of a deferred change.
func (s *story) again(pr *embedded.PR, st stage, check embedded.Check, first doneRun) error {
	if err := s.command(pr, reader, "confused", "😕"); err != nil {
		return err
	}
	if err := s.command(pr, writer, "rocket", "🚀"); err != nil {
		return err
	}
	_, second, err := s.verdict(pr, st, check.ID)
	if err != nil {
		return err
	}
	if a, b := first.verdict.Measuring, second.verdict.Measuring; a != nil && b != nil && a.Rounds == b.Rounds {
		s.Note("the %d rounds of the first attempt already decided: more rounds cannot change the verdict", a.Rounds)
	}
	return nil
}

// command requests a rebench as a user, and prints the bot's answer.
func (s *story) command(pr *embedded.PR, who, reaction, emoji string) error {
	c, err := pr.Comment(who, rebench)
	if err != nil {
		return err
	}
	s.Note("%s comments %s", who, rebench)
	if err := s.reacted(pr, c, "eyes"); err != nil {
		return err
	}
	s.Note("%s reacts 👀", s.App.Login())
	reply, err := s.replied(pr, c)
	if err != nil {
		return err
	}
	if err := s.reacted(pr, c, reaction); err != nil {
		return fmt.Errorf("%w; it replied: %s", err, reply)
	}
	s.Note("%s reacts %s and replies: %s", s.App.Login(), emoji, report.Plain(reply))
	return nil
}

// docs opens a pull request that changes no kernel. Without a result of the required check it would
// be blocked forever.
func (s *story) docs() error {
	pr, err := s.propose("docs", "Say what the kernels are for", map[string]string{readme: "Attention kernels, each gated by kernelgate.\n"})
	if err != nil {
		return err
	}
	c, err := s.concluded(pr, 0)
	if err != nil {
		return err
	}
	s.Note("the check %q concludes %s: %s", c.Name, c.Conclusion, c.Title)
	mark := "✓"
	if c.Conclusion != "success" {
		mark = "✗"
		s.wrong++
	}
	s.lines = append(s.lines, fmt.Sprintf("%s %-8s %s", mark, "docs", c.Title))
	if mark == "✗" {
		return nil
	}
	return s.merge(pr, "")
}
