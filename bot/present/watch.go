package present

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/kernelgate/kernelgate/bot/watch"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A WatchView has everything that the issue of a watched kernel shows.
type WatchView struct {
	State *watch.State
	Repo  string // owner/name
	Web   string // GitHub's address; may be empty
	Page  Page   // of the run that the newest figures are from; may be empty
}

// WatchLabel is the label of the bot's issues.
const WatchLabel = "kernelgate"

// WatchMarker is the hidden first line of a kernel's issue. After a crash, the bot uses it to find an issue
// that it has opened and not recorded.
func WatchMarker(repo int64, folder, device string) string {
	return "<!-- kernelgate:" + watch.Subject(repo, folder, device) + " -->"
}

// EndMarker is the hidden first line of the comment that says why an issue is closed.
func EndMarker(p *watch.Past) string {
	return "<!-- kernelgate:end:" + p.First.Change + ":" + p.By.Change + " -->"
}

// IssueTitle is the title of the kernel's issue. It has no figures, so that it does not change every night.
func (v WatchView) IssueTitle() string {
	r := v.State.Regression
	return titleOf(r, gates.NameOn(v.State.Folder, v.State.Device))
}

func titleOf(r *watch.Regression, kernel string) string {
	name := report.Clip(report.Plain(kernel), nameRunes)
	if r.Form == watch.Shifted {
		return name + ": slower than before on the same device"
	}
	return name + ": slower than " + report.Clip(report.Plain(comparedWith(r.Look)), nameRunes)
}

// comparedWith names what the default branch is compared with.
func comparedWith(l watch.Look) string {
	if l.Against == watch.Best {
		return "its best state"
	}
	return l.Tag
}

// IssueBody is the text of the kernel's issue.
func (v WatchView) IssueBody() string {
	r := v.State.Regression
	parts := []string{
		WatchMarker(v.State.Repo, v.State.Folder, v.State.Device) + "\n" + v.finding(r),
		v.bisect(r),
		v.cause(r),
		v.release(r),
		v.figures(r),
		v.provenance(r),
		"kernelgate closes this issue when a watch proves that the slowdown is gone, or when two watches in a row neither prove nor show the slowdown. If you close the issue, it stays closed until the slowdown is gone.\n",
	}
	return mute(joined(parts...))
}

func (v WatchView) finding(r *watch.Regression) string {
	l := r.Look
	name := report.EscapeCode(report.Clip(report.Plain(gates.NameOn(l.Kernel, v.State.Device)), nameRunes))
	if r.Form == watch.Shifted {
		return fmt.Sprintf("%s is slower than before on %s, at every shape: on %s, and at %s, whose code is the same as before.\n", name, report.Escape(l.Device), report.EscapeCode(l.Branch), v.base(l))
	}
	worst := l.Worst()
	slow := l.Slowdowns()
	where := "at " + report.EscapeCode(worst.Name)
	if len(slow) > 1 {
		where += fmt.Sprintf(", and proven slower at %s in all", number.Plural(len(slow), "shape"))
	}
	if len(slow) == 0 {
		where += ". The newest figures show the slowdown but do not prove it. An earlier watch proved it"
	}
	return fmt.Sprintf("%s on %s is slower than %s: **%s** %s.\n", name, report.EscapeCode(l.Branch), v.base(l), speedupOf(worst).Gain(-l.Slower), where)
}

// release says that people changed the tags of releases since the slowdown was proven. A tag alone must not
// hide a slowdown.
func (v WatchView) release(r *watch.Regression) string {
	l := v.State.Last
	if l == nil || l.Against != watch.Release || r.Form != watch.Behind {
		return ""
	}
	now := l.Newest
	if now == nil && l.Base != r.First.Base {
		now = &watch.Pin{Tag: l.Tag, Base: l.Base}
	}
	switch {
	case now != nil && now.Tag == r.First.Tag || now == nil && l.MovedTo != "":
		return fmt.Sprintf("**The tag was moved.** %s has a different commit now. Watches go on with %s, which it had first.\n", report.EscapeCode(report.Clip(report.Plain(r.First.Tag), nameRunes)), v.commit(r.First.Base))
	case now != nil:
		return fmt.Sprintf("**The release changed.** The newest release is %s (%s). Watches compare with %s until the slowdown is gone, because the slowdown is proven against it. If the new release accepts the slowdown, close this issue.\n",
			report.EscapeCode(report.Clip(report.Plain(now.Tag), nameRunes)), v.commit(now.Base), report.EscapeCode(report.Clip(report.Plain(r.First.Tag), nameRunes)))
	}
	return ""
}

// base is what the head is compared with.
func (v WatchView) base(l watch.Look) string {
	if l.Against == watch.Best {
		return "its best state, " + v.commit(l.Base)
	}
	return fmt.Sprintf("the release %s (%s)", report.EscapeCode(l.Tag), v.commit(l.Base))
}

func (v WatchView) commit(sha string) string {
	l := report.Link{Text: report.Short(sha)}
	if fullCommit.MatchString(sha) && v.Web != "" && strings.Count(v.Repo, "/") == 1 {
		l.URL = strings.TrimSuffix(v.Web, "/") + (&url.URL{Path: "/" + v.Repo + "/commit/" + sha}).EscapedPath()
	}
	return l.Markdown()
}

// cause says what explains the slowdown.
func (v WatchView) cause(r *watch.Regression) string {
	if r.Before == nil {
		return fmt.Sprintf("**Cause: %s.** No earlier watch proves that the kernel was without the slowdown. Both sides were built by the same compiler and ran on the same device, so only the code differs.\n", r.Class)
	}
	differences := watch.Differences(*r.Before, r.First)
	var changes []string
	for _, d := range differences {
		changes = append(changes, "- "+v.difference(d))
	}
	if len(changes) == 0 {
		return fmt.Sprintf("**Cause: %s.** The evidence records no change since the last watch without the slowdown. Two watches in a row prove the slowdown, so it is not noise. Only the machine is left as a cause.\n", r.Class)
	}
	why := map[watch.Class]string{
		watch.Code:      "The sources of the kernel changed since the last watch without the slowdown.",
		watch.Toolchain: "The sources are the same as in the last watch without the slowdown, but the compiler is different.",
		watch.Driver:    "Sources and compiler are the same as in the last watch without the slowdown, but the driver is different.",
		watch.Device:    "Sources, compiler and driver are the same as in the last watch without the slowdown, but the device or the host is different.",
	}[r.Class]
	switch {
	case r.Form == watch.Shifted:
		why = "The times changed together with the " + map[watch.Class]string{watch.Toolchain: "compiler", watch.Driver: "driver", watch.Device: "device or the host"}[r.Class] + "."
	case differences[0].Part == watch.PartBase:
		why = "The sources are the same as in the last watch without the slowdown, but this watch compares them with a different commit."
	}
	return fmt.Sprintf("**Cause: %s.** %s\n\nChanged since the watch of %s:\n\n%s", r.Class, why, minute(r.Before.Due), list(changes, 4_000, "changes"))
}

func (v WatchView) difference(d watch.Difference) string {
	part := map[watch.Part]string{
		watch.PartSources: "sources", watch.PartBase: "compared with", watch.PartCompiler: "compiler", watch.PartDriver: "driver", watch.PartDevice: "device", watch.PartHost: "host",
	}[d.Part]
	show := func(text string) string {
		switch {
		case d.Part == watch.PartSources || d.Part == watch.PartBase:
			return v.commit(text)
		case text == "":
			return "unknown"
		}
		return report.EscapeCode(report.Clip(report.Plain(text), nameRunes))
	}
	return fmt.Sprintf("%s: %s → %s", part, show(d.Before), show(d.After))
}

// maxTable bounds the table in bytes: an issue has room for 65,536.
const maxTable = 30_000

func (v WatchView) figures(r *watch.Regression) string {
	l := r.Look
	before := map[string]float64{}
	if r.Form == watch.Shifted && r.Before != nil {
		for _, s := range r.Before.Shapes {
			before[s.Name+" "+s.Dims] = s.Baseline
		}
	}
	var rows []string
	for _, s := range l.Shapes {
		name, size := report.EscapeCode(report.Plain(s.Name)), report.EscapeCode(report.Plain(s.Dims))
		switch {
		case s.Same:
			rows = append(rows, row(name, size, "", "", "same machine code", ""))
		case r.Form == watch.Shifted:
			was := before[s.Name+" "+s.Dims]
			change := ""
			if was > 0 {
				change = number.Speedup(was/s.Baseline - 1)
			}
			rows = append(rows, row(name, size, number.Time(was), number.Time(s.Baseline), change, number.Time(s.Candidate)))
		default:
			found := ""
			if s.Upper < 1-l.Slower {
				found = "slower"
			}
			e := speedupOf(s)
			rows = append(rows, row(name, size, number.Time(s.Baseline), number.Time(s.Baseline/s.Speed), e.Gain(-l.Slower)+" "+e.Interval(-l.Slower), found))
		}
	}
	base := report.Escape(comparedWith(l))
	head := []string{"shape", "size", base, report.Escape(l.Branch), "speedup", "proven"}
	if r.Form == watch.Shifted {
		head = []string{"shape", "size", base + " before", base + " now", "speedup", report.Escape(l.Branch) + " now"}
	}
	return table(head, rows, maxTable, "shapes")
}

// speedupOf is the speed of a shape as a speedup.
func speedupOf(s watch.Shape) gates.Estimate {
	return gates.Estimate{Value: s.Speed - 1, Lower: new(s.Lower - 1), Upper: new(s.Upper - 1)}
}

func (v WatchView) bisect(r *watch.Regression) string {
	good, bad, ok := r.Range()
	switch b := r.Bisect; {
	case !ok:
		return ""
	case b == nil:
		return fmt.Sprintf("**Commit:** no search has started. The commit is after %s and not later than %s.\n", v.commit(good), v.commit(bad))
	case b.Failed:
		return fmt.Sprintf("**Commit:** the search found no single commit after %s and not later than %s.\n", v.commit(good), v.commit(bad))
	case b.Pending():
		return fmt.Sprintf("**Commit:** a search has started. It looks at the commits after %s, up to %s.\n", v.commit(good), v.commit(bad))
	case b.Between > 0:
		return fmt.Sprintf("**Commit:** %s, or an earlier commit: %s before it could not be judged. The last good commit is %s.%s\n", v.commit(b.First), number.Plural(b.Between, "commit"), v.commit(b.Last), sureness(b))
	default:
		return fmt.Sprintf("**Commit:** %s made the kernel slower.%s\n", v.commit(b.First), sureness(b))
	}
}

func sureness(b *watch.Bisection) string {
	text := ""
	if b.Error > 0 {
		text = fmt.Sprintf(" The search names a wrong commit with a probability of at most %s.", number.Share(b.Error))
	}
	if b.Unsure {
		text += " Some steps of the search are not proven."
	}
	return text
}

func (v WatchView) provenance(r *watch.Regression) string {
	l := r.Look
	device := report.Escape(l.Device)
	if l.Driver != "" {
		device += ", driver " + report.Escape(l.Driver)
	}
	lines := []string{
		fmt.Sprintf("- %s at %s, against %s", report.EscapeCode(l.Branch), v.commit(l.Head), v.base(l)),
		fmt.Sprintf("- %s on %s", number.Plural(l.Rounds, "round"), device),
	}
	if l.Compiler != "" {
		lines = append(lines, "- compiler: "+report.Escape(report.Clip(report.Plain(l.Compiler), nameRunes)))
	}
	lines = append(lines, fmt.Sprintf("- found by the watch of %s, last measured by the watch of %s", minute(r.First.Due), minute(l.Due)))
	if r.Form == watch.Behind {
		lines = append(lines, fmt.Sprintf("- the smallest slowdown that counts is %s; the probability of a false alarm is at most %s in each watch", number.Share(l.Slower), number.Share(watch.ErrorRate)))
	}
	if v.Page.URL != "" {
		lines = append(lines, "- [all figures]("+v.Page.URL+")")
	}
	if v.Page.History != "" {
		lines = append(lines, "- [history of the kernel]("+v.Page.History+")")
	}
	return strings.Join(lines, "\n") + "\n"
}

// EndComment is the comment that says why the issue is closed.
func (v WatchView) EndComment() string {
	p := v.State.Ended
	l := p.By
	why := ""
	switch p.Ending {
	case watch.Unwatched:
		why = "The kernel is not watched any more."
	case watch.Unproven:
		why = fmt.Sprintf("Two watches in a row neither prove nor show the slowdown. The last one measured %s against %s.", v.commit(l.Head), v.base(l))
	default:
		why = fmt.Sprintf("The slowdown is gone: at %s, no shape is slower by %s or more compared with %s.", v.commit(l.Head), number.Share(l.Slower), v.base(l))
		if p.Form == watch.Shifted {
			why = fmt.Sprintf("The slowdown is gone: %s is as fast on %s as before.", v.base(l), report.Escape(l.Device))
		}
		if w := l.Worst(); w.Name != "" && !w.Same && p.Form == watch.Behind {
			why += fmt.Sprintf(" The slowest shape is %s, with %s.", report.EscapeCode(w.Name), speedupOf(w).Gain(-l.Slower))
		}
	}
	if v.Page.URL != "" && p.Ending != watch.Unwatched {
		why += " [All figures](" + v.Page.URL + ")"
	}
	return EndMarker(p) + "\n" + mute(why) + "\n"
}
