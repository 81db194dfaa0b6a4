package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// untrue is how long somebody has said something untrue.
type untrue struct {
	what    string
	lasts   time.Duration // so far
	longest time.Duration
	worst   string // what was said then
	told    bool   // about this time
}

// untrueAtMost is how long /readyz may take to notice.
const untrueAtMost = time.Minute

// say takes one answer: the time since the last one, and whether it was wrong, or nil if either answer is right.
func (u *untrue) say(s *soak, passed time.Duration, wrong *bool, said string) {
	switch {
	case wrong == nil: // neither ends the lie nor makes it longer
		return
	case !*wrong:
		u.lasts, u.told = 0, false
		return
	}
	if u.lasts += passed; u.lasts > u.longest {
		u.longest, u.worst = u.lasts, said
	}
	if u.lasts > untrueAtMost && !u.told {
		u.told = true
		s.fail("%s has been untrue for %v: %s", u.what, u.lasts.Round(time.Second), said)
	}
}

// soakWatch compares what bots say with the truth.
type soakWatch struct {
	s    *soak
	quit chan struct{}
	run  sync.WaitGroup

	mu      sync.Mutex
	lies    []*untrue // of each bot's /readyz, and of who leads
	scrapes int
	asked   int
	memory  []float64 // the largest of each bot
}

func (s *soak) watch() *soakWatch {
	w := &soakWatch{s: s, quit: make(chan struct{}), memory: make([]float64, len(s.bots))}
	for i, b := range s.bots {
		u := &untrue{what: "/readyz of " + b.name}
		w.metrics(i, b)
		w.lies = append(w.lies, u)
		w.every(time.Second, func(passed time.Duration) { w.ready(b, u, passed) })
		w.every(5*time.Second, func(time.Duration) { w.metrics(i, b) })
	}
	leads := &untrue{what: "kernelgate_leads"}
	w.lies = append(w.lies, leads)
	w.every(time.Second, func(passed time.Duration) { w.leader(leads, passed) })
	return w
}

func (w *soakWatch) every(d time.Duration, do func(passed time.Duration)) {
	w.run.Go(func() {
		for last := time.Now(); ; {
			select {
			case <-w.quit:
				return
			case <-w.s.ctx.Done():
				return
			case <-time.After(d):
			}
			passed := time.Since(last)
			last = time.Now()
			do(passed)
		}
	})
}

func (w *soakWatch) end() {
	close(w.quit)
	w.run.Wait()
	w.s.heads.judge(w.s)
}

// shouldBeReady returns what /readyz must say, or nil where both answers are true.
func (s *soak) shouldBeReady(started time.Time, full bool) *bool {
	yes, no := true, false
	s.github.mu.Lock()
	refused, failing := s.github.refused, s.github.failing
	s.github.mu.Unlock()
	switch {
	case !s.nats.quorum():
		return &no
	case refused && failing.IsZero():
		return &no
	case refused, full: // GitHub does not say that it refuses the key; a ledger without disk space may be behind
		return nil
	case !failing.IsZero() && started.After(failing.Add(-10*time.Second)): // it never knew GitHub
		return nil
	}
	return &yes
}

func (w *soakWatch) ready(b *soakBot, u *untrue, passed time.Duration) {
	before := b.condition()
	if before.meant {
		u.lasts = 0
		return
	}
	want := w.s.shouldBeReady(before.started, before.full)
	status, said := 0, "it has ended, and is started again"
	if before.runs {
		var err error
		if status, said, err = ask(w.s.ctx, b.url+"/readyz"); err != nil {
			said = err.Error()
		}
	}
	if b.condition() != before {
		return // it was killed or started meanwhile
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if want == nil {
		u.say(w.s, passed, nil, said)
		return
	}
	wrong := *want != (status == http.StatusOK)
	u.say(w.s, passed, &wrong, strings.Join(strings.Fields(said), " "))
}

// leader checks that exactly one bot says that it leads, if any can.
func (w *soakWatch) leader(u *untrue, passed time.Duration) {
	leads, can := 0, 0
	for _, b := range w.s.bots {
		if c := b.condition(); c.runs {
			if b.leads.Load() {
				leads++
			}
			if !c.full {
				can++
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if can == 0 || !w.s.nats.quorum() {
		u.say(w.s, passed, nil, "")
		return
	}
	wrong := leads != 1
	u.say(w.s, passed, &wrong, fmt.Sprintf("%d bots lead", leads))
}

func (w *soakWatch) metrics(i int, b *soakBot) {
	before := b.condition()
	if !before.runs {
		b.leads.Store(false)
		return
	}
	m, err := scrape(w.s.ctx, b.url)
	if b.condition() != before {
		return
	}
	if err != nil {
		if _, ok := err.(malformed); ok {
			w.s.fail("the metrics of %s: %v", b.name, err)
		}
		return
	}
	b.leads.Store(m.value("kernelgate_leads") == 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scrapes++
	w.memory[i] = max(w.memory[i], m.value("process_resident_memory_bytes"))
}

func (w *soakWatch) summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := time.Duration(0)
	for _, u := range w.lies {
		longest = max(longest, u.longest)
	}
	return fmt.Sprintf("readiness untrue for %v at most", longest.Round(time.Second))
}

// ask sends a GET request.
func ask(ctx context.Context, url string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(rq)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// A scraped is a page of metrics.
type scraped map[string]*dto.MetricFamily

// malformed is the error of a page that Prometheus could not read.
type malformed struct{ error }

func scrape(ctx context.Context, bot string) (scraped, error) {
	status, text, err := ask(ctx, bot+"/metrics")
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("/metrics answers %d: %s", status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, malformed{err}
	}
	return all, nil
}

// value returns the sum of a metric.
func (m scraped) value(name string) float64 { return m.labelled(name, "", "") }

// labelled returns the sum of a metric over the series with a label.
func (m scraped) labelled(name, label, value string) (sum float64) {
	for _, series := range m[name].GetMetric() {
		has := label == ""
		for _, l := range series.GetLabel() {
			has = has || l.GetName() == label && l.GetValue() == value
		}
		if has {
			sum += series.GetGauge().GetValue() + series.GetCounter().GetValue() + series.GetUntyped().GetValue()
		}
	}
	return sum
}
