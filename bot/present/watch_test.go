package present

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/watch"
)

// lookOf returns the look of one night.
func lookOf(night int, speed float64, change func(*watch.Look)) watch.Look {
	l := watch.Look{
		Change: fmt.Sprintf("watch-7-%040d", night), Due: time.Date(2026, 5, night, 2, 30, 0, 0, time.UTC), Kernel: "scale", Against: watch.Release, Tag: "v1.2.0",
		Base: strings.Repeat("b", 40), Head: strings.Repeat("1", 40), Branch: "main", Slower: 0.01, Rounds: 8,
		Cell: watch.Cell{Sources: "s1", Compiler: "nvcc 12.8.93", Driver: "570.86", Device: "NVIDIA L4", Arch: "sm_89", UUID: "GPU-1", Host: "gate1"},
		Shapes: []watch.Shape{
			{Name: "mission", Dims: "N=1000", Speed: speed, Lower: speed - 0.006, Upper: speed + 0.006, Baseline: 1000, Candidate: 1000 / speed},
			{Name: "small", Dims: "N=10", Speed: 1.002, Lower: 0.995, Upper: 1.009, Baseline: 12.5, Candidate: 12.475},
			{Name: "tiny", Dims: "N=1", Same: true, Speed: 1, Lower: 1, Upper: 1},
		},
	}
	if change != nil {
		change(&l)
	}
	return l
}

// TestIssues writes the issue of each kind of slowdown, and the comment that closes it.
func TestIssues(t *testing.T) {
	edited := func(l *watch.Look) { l.Sources, l.Head = "s2", strings.Repeat("2", 40) }
	slower := func(l *watch.Look) {
		l.Compiler = "nvcc 13.0.88"
		l.Shapes = l.Shapes[:2]
		for i := range l.Shapes {
			l.Shapes[i].Baseline *= 1.1
			l.Shapes[i].Candidate *= 1.1
		}
	}
	bisected := watch.Bisected{Bisection: watch.Bisection{Good: strings.Repeat("1", 40), Bad: strings.Repeat("2", 40), First: strings.Repeat("c", 40), Last: strings.Repeat("d", 40), Error: 0.05}}
	between := bisected
	between.Between, between.Unsure = 2, true
	failed, pending := bisected, bisected
	failed.First, failed.Failed = "", true
	pending.First = ""
	sound := watch.Looked{Look: lookOf(1, 1, nil)}
	for name, events := range map[string][]watch.Event{
		"code":       {sound, watch.Looked{Look: lookOf(2, 0.8, edited)}},
		"bisected":   {sound, watch.Looked{Look: lookOf(2, 0.8, edited)}, bisected},
		"one device": {watch.Looked{Device: "h200", Look: lookOf(2, 0.8, edited)}},
		"between":    {sound, watch.Looked{Look: lookOf(2, 0.8, edited)}, between},
		"failed":     {sound, watch.Looked{Look: lookOf(2, 0.8, edited)}, failed},
		"pending":    {sound, watch.Looked{Look: lookOf(2, 0.8, edited)}, pending},
		"first":      {watch.Looked{Look: lookOf(2, 0.8, edited)}},
		"shown":      {watch.Looked{Look: lookOf(2, 0.8, edited)}, watch.Looked{Look: lookOf(3, 0.985, edited)}},
		"best":       {watch.Looked{Look: lookOf(2, 0.8, func(l *watch.Look) { l.Against, l.Tag = watch.Best, "" })}},
		"newer base": {sound, watch.Looked{Look: lookOf(2, 0.9, func(l *watch.Look) { l.Base, l.Tag = strings.Repeat("e", 40), "v1.3.0" })}},
		"toolchain":  {sound, watch.Looked{Look: lookOf(2, 0.9, func(l *watch.Look) { l.Compiler = "nvcc 13.0.88" })}},
		"driver":     {sound, watch.Looked{Look: lookOf(2, 0.9, func(l *watch.Look) { l.Driver = "" })}},
		"device":     {sound, watch.Looked{Look: lookOf(2, 0.9, func(l *watch.Look) { l.UUID, l.Host = "GPU-2", "gate2" })}},
		"unseen":     {sound, watch.Looked{Look: lookOf(2, 0.9, nil)}, watch.Looked{Look: lookOf(3, 0.9, nil)}},
		"shifted":    {sound, watch.Looked{Look: lookOf(2, 1, slower)}},
		"gone":       {watch.Looked{Look: lookOf(2, 0.8, edited)}, watch.IssueWritten{Number: 3}, watch.Looked{Look: lookOf(3, 1, nil)}},
		"unproven":   {watch.Looked{Look: lookOf(2, 0.8, edited)}, watch.IssueWritten{Number: 3}, watch.Looked{Look: lookOf(3, 0.991, nil)}, watch.Looked{Look: lookOf(4, 0.991, nil)}},
		"new release": {watch.Looked{Look: lookOf(2, 0.8, edited)}, watch.Looked{Look: lookOf(3, 0.8, func(l *watch.Look) {
			edited(l)
			l.Newest = &watch.Pin{Tag: "v99.0.0+x", Base: strings.Repeat("2", 40)}
		})}},
		"moved tag":  {watch.Looked{Look: lookOf(2, 0.8, func(l *watch.Look) { edited(l); l.MovedTo = strings.Repeat("2", 40) })}},
		"unwatched":  {watch.Looked{Look: lookOf(2, 0.8, edited)}, watch.IssueWritten{Number: 3}, watch.Dropped{}},
		"shift gone": {sound, watch.Looked{Look: lookOf(2, 1, slower)}, watch.IssueWritten{Number: 3}, watch.Looked{Look: lookOf(3, 1, nil)}},
		"hostile": {watch.Looked{Look: lookOf(2, 0.8, func(l *watch.Look) {
			l.Kernel, l.Tag, l.Branch, l.Device = "`@all` <!-- | -->", "v1 --> @all | x", "a|b", "@all\n/rebench"
			l.Shapes[0].Name = "|`@all"
		})}},
	} {
		s := &watch.State{}
		for i, e := range events {
			if looked, ok := e.(watch.Looked); ok {
				looked.Repo, looked.Folder = 7, "kernels/scale"
				e = looked
			}
			s.Apply(uint64(i+1), e)
		}
		v := WatchView{State: s, Repo: "olga/kernels", Web: "https://github.example", Page: Page{URL: "https://gate.example/runs/j", History: "https://gate.example/kernels/scale"}}
		text := ""
		switch s.Action() {
		case watch.Write:
			text = v.IssueTitle() + "\n====\n" + v.IssueBody()
			if !strings.HasPrefix(v.IssueBody(), WatchMarker(7, "kernels/scale", s.Device)) {
				t.Errorf("%s: the issue has no marker", name)
			}
		case watch.Close:
			text = v.EndComment()
		default:
			t.Errorf("%s: nothing is to be done", name)
		}
		golden(t, "watch-"+strings.ReplaceAll(name, " ", "-")+".md", text)
	}
}
