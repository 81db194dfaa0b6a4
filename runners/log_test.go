package runners

import (
	"strings"
	"testing"
	"time"
)

func TestLog(t *testing.T) {
	at := time.Unix(0, 0)
	l := &Log{Now: func() time.Time { at = at.Add(time.Second); return at }}
	if l.Latest() != nil || l.After(0, 10) != nil {
		t.Error("something was said before anything was")
	}
	for _, e := range events {
		l.Report(e)
	}
	said := l.After(0, 10)
	var got []string
	for _, s := range said {
		got = append(got, s.String())
	}
	want := "build: compiling the baseline|correctness: comparing 12 cases with the reference|performance: measuring, round 1 of 6|" +
		"performance: measuring, round 4 of 6, mission +16.1 % [+14.0 %, +18.0 %] so far, about 4s left"
	if strings.Join(got, "|") != want || !said[1].At.After(said[0].At) {
		t.Errorf("got %q at %v", got, said[1].At)
	}
	if more := l.After(3, 10); len(more) != 1 || more[0].Done != 3 {
		t.Errorf("after three came %v", more)
	}
	if some := l.After(1, 2); len(some) != 2 || some[0].Gate != "correctness" {
		t.Errorf("two after one are %v", some)
	}
	if none := l.After(99, 10); len(none) != 0 {
		t.Errorf("after more than there is came %v", none)
	}
	if *l.Latest() != events[len(events)-1] {
		t.Errorf("the last is %v", l.Latest())
	}
}

func TestLogIsBounded(t *testing.T) {
	l := &Log{Now: time.Now}
	for range MostSaid + 10 {
		l.Report(Event{Text: strings.Repeat("é", 10_000)})
	}
	if said := l.After(0, MostSaid+10); len(said) != MostSaid || len([]rune(said[0].Text)) != mostText || len([]rune(l.Latest().Text)) != mostText {
		t.Errorf("%d are kept, of %d bytes", len(said), len(said[0].Text))
	}
}
