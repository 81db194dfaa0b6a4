package try

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/local"
)

// A trial holds the pull requests until their verdicts.
type trial struct {
	*local.World
	*local.Teller
	from  *source
	opt   Options
	pulls []pull
	shown map[int]string // the last line printed about each
}

type pull struct {
	*embedded.PR
	branch string
}

// wait prints each verdict as it arrives, until there are all.
func (t *trial) wait() error {
	err := t.Hub.WaitFor(t.Ctx, func() bool { return t.tell() == len(t.pulls) })
	if err != nil {
		return fmt.Errorf("waiting for the verdicts: %w", err)
	}
	return nil
}

// tell prints what is new about the pull requests, and counts those that have a verdict or will get
// none here.
func (t *trial) tell() (settled int) {
	for _, p := range t.pulls {
		line, done := t.standing(p)
		if done {
			settled++
		}
		if line != "" && line != t.shown[p.Number()] {
			t.shown[p.Number()] = line
			t.Note("%s", line)
		}
	}
	return settled
}

// standing describes a pull request in one line. The line is empty while the bot works on it.
func (t *trial) standing(p pull) (line string, done bool) {
	c, ok := t.Check(p.PR)
	name := fmt.Sprintf("#%d %s", p.Number(), p.branch)
	switch {
	case !ok:
		return "", false
	case c.Status != "completed":
		if missing := t.unfit(p); missing != "" {
			return fmt.Sprintf("✗ %s  cannot be measured here: %s", name, missing), true
		}
		return "", false
	}
	mark, merge := "✓", "it can be merged"
	if c.Conclusion != "success" {
		mark = "✗"
	}
	if why := p.MergeRefusal(you); !p.State().Open {
		merge = "it is closed"
		if p.State().Merged {
			merge = "it is merged"
		}
	} else if why != "" {
		merge = "no merge: " + strings.TrimSuffix(why, ".")
	}
	return fmt.Sprintf("%s %s  %s (%s)", mark, name, c.Title, merge), true
}

// unfit returns why no runner here will ever take a kernel of a pull request: its policy names
// devices that this machine does not have.
func (t *trial) unfit(p pull) string {
	id := t.ID(p.PR)
	last, err := t.Bot.Journal.Last(t.Ctx, id.String())
	if err != nil || t.Bot.Ledger.WaitFor(t.Ctx, last.Seq) != nil {
		return ""
	}
	state, err := t.Bot.Ledger.Change(t.Ctx, id)
	if err != nil {
		return "" // not planned yet
	}
	i := slices.IndexFunc(state.Runs, func(r change.Run) bool {
		here := func(label string) bool { return slices.Contains(t.opt.Devices, label) }
		return r.Unfinished() && len(r.Labels) > 0 && !slices.ContainsFunc(r.Labels, here)
	})
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s needs a runner labelled %s, and this machine is %s", state.Runs[i].Name, strings.Join(state.Runs[i].Labels, " or "), strings.Join(t.opt.Devices, ", "))
}

// good counts the pull requests whose required check has passed.
func (t *trial) good() (n int) {
	for _, p := range t.pulls {
		if c, ok := t.Check(p.PR); ok && c.Status == "completed" && c.Conclusion == "success" {
			n++
		}
	}
	return n
}

func (t *trial) passed() bool { return t.good() == len(t.pulls) }

// end prints the summary.
func (t *trial) end() {
	verb := "pass"
	if t.good() == 1 {
		verb = "passes"
	}
	t.Say("\n%d of %d %s.\n", t.good(), len(t.pulls), verb)
}

// linger lets users look around, comment, and commit to their branches until they press Ctrl-C.
func (t *trial) linger(ctx context.Context) {
	t.Offer(t.Teller, you, rebench, t.pulls[len(t.pulls)-1].PR)
	t.Say("Commit to a branch in your repository, and its pull request is updated and judged again.\n\n")
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		t.follow()
	}()
	err := t.Hub.WaitFor(t.Ctx, func() bool {
		t.tell()
		return false
	})
	<-watching
	if ctx.Err() == nil {
		t.Say("%v\n", err)
	}
}

// follow pushes the user's new commits to the branches, until the world ends.
func (t *trial) follow() {
	tick := time.NewTicker(t.opt.every())
	defer tick.Stop()
	branches := append([]branch{t.from.base}, t.from.branches...)
	for {
		select {
		case <-t.Ctx.Done():
			return
		case <-tick.C:
		}
		now, err := t.from.tips(t.Ctx, branches)
		if err != nil {
			continue // git may be in the middle of an operation
		}
		for i, b := range branches {
			if now[b.ref] == "" || now[b.ref] == b.sha {
				continue // keep a branch that was deleted
			}
			branches[i].sha = now[b.ref]
			if err := t.from.copyTo(t.Ctx, t.Repo, t.Dir(), b); err != nil {
				if t.Ctx.Err() == nil {
					t.Note("the new commits of %s cannot be copied: %v", b.name, err)
				}
				continue
			}
			t.Note("%s is at %.12s now", b.name, now[b.ref])
		}
	}
}
