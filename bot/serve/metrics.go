package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
	"github.com/kernelgate/kernelgate/bot/queue"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// counters are the server's metrics, in a registry of their own.
type counters struct {
	registry *prometheus.Registry
	webhooks *prometheus.CounterVec
	accepted prometheus.Counter
}

func newCounters(s *Server) *counters {
	c := &counters{
		registry: prometheus.NewRegistry(),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kernelgate_webhooks_total", Help: "Requests to /webhook, by the answer's status.",
		}, []string{"code"}),
		accepted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kernelgate_deliveries_accepted_total", Help: "Deliveries that the journal has, copies included.",
		}),
	}
	c.registry.MustRegister(c.webhooks, c.accepted, observer{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

// store counts what the journal takes.
func (s *Server) store(ctx context.Context, d webhook.Delivery) error {
	err := s.Bot.Store(ctx, d)
	if err == nil {
		s.counts.accepted.Inc()
	}
	return err
}

// counted counts answers by their status.
func (c *counters) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() { c.webhooks.WithLabelValues(strconv.Itoa(seen.status)).Inc() }()
		h.ServeHTTP(seen, r)
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets deadlines be set through it.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// An observer asks each part for its figures when somebody looks.
type observer struct{ *Server }

type figure struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

func newFigure(kind prometheus.ValueType, name, help string, labels ...string) figure {
	return figure{prometheus.NewDesc("kernelgate_"+name, help, labels, nil), kind}
}

// The figures, in the order of the README's table.
var (
	handled      = newFigure(prometheus.CounterValue, "deliveries_handled_total", "Attempts to handle a delivery.")
	failed       = newFigure(prometheus.CounterValue, "deliveries_failed_total", "Attempts that failed and are made again.")
	dead         = newFigure(prometheus.GaugeValue, "deliveries_dead", "Deliveries that were given up after several attempts.")
	oldest       = newFigure(prometheus.GaugeValue, "deliveries_oldest_seconds", "Age of the oldest delivery that nobody has handled yet; 0 if there is none.")
	planned      = newFigure(prometheus.CounterValue, "changes_planned_total", "Changes that were looked at for kernels.")
	answered     = newFigure(prometheus.CounterValue, "commands_answered_total", "Commands on pull requests that were answered.")
	published    = newFigure(prometheus.CounterValue, "publications_total", "Checks and comments that were brought up to date.")
	retried      = newFigure(prometheus.CounterValue, "publication_retries_total", "Publications that failed and are made again.")
	reconciled   = newFigure(prometheus.GaugeValue, "last_reconciled_timestamp_seconds", "When everything was last looked at; 0 before.")
	queueJobs    = newFigure(prometheus.GaugeValue, "queue_jobs", "Jobs that are not finished.", "label", "state")
	queueOldest  = newFigure(prometheus.GaugeValue, "queue_oldest_seconds", "Age of the oldest job that is not finished.", "label")
	queueWait    = newFigure(prometheus.UntypedValue, "queue_wait_seconds", "How long jobs waited until a runner first had them.", "class")
	runsDone     = newFigure(prometheus.GaugeValue, "runs", "Runs in the ledger that are done, by outcome.", "outcome")
	runsPhase    = newFigure(prometheus.GaugeValue, "runs_by_phase", "Runs in the ledger.", "phase")
	changes      = newFigure(prometheus.GaugeValue, "changes", "Changes in the ledger.")
	openChanges  = newFigure(prometheus.GaugeValue, "changes_open", "Pull requests and merge groups that are open.")
	unsettled    = newFigure(prometheus.GaugeValue, "changes_unsettled", "Changes with something left to do.")
	ledgerSeq    = newFigure(prometheus.GaugeValue, "ledger_seq", "Sequence of the last event in the ledger.")
	ledgerLag    = newFigure(prometheus.GaugeValue, "ledger_lag_events", "Events in the journal that the ledger does not have yet; 10000 is that many or more.")
	hubRequests  = newFigure(prometheus.CounterValue, "hub_requests_total", "Requests to GitHub.", "class", "outcome")
	hubRetries   = newFigure(prometheus.CounterValue, "hub_retries_total", "Requests to GitHub that repeat another after a fault.")
	hubWaits     = newFigure(prometheus.CounterValue, "hub_waits_total", "Pauses that a limit of GitHub's demanded.", "reason")
	hubWaited    = newFigure(prometheus.CounterValue, "hub_wait_seconds_total", "Time in those pauses.", "reason")
	hubRemaining = newFigure(prometheus.GaugeValue, "hub_remaining", "Requests left in this hour.", "identity")
	hubShut      = newFigure(prometheus.GaugeValue, "hub_shut", "1 where an IP allow list refuses this machine.", "identity")
	cacheHits    = newFigure(prometheus.CounterValue, "hub_cache_hits_total", "Answers that GitHub confirmed as unchanged.")
	cacheMisses  = newFigure(prometheus.CounterValue, "hub_cache_misses_total", "Answers that were read anew.")
	cacheBytes   = newFigure(prometheus.GaugeValue, "hub_cache_bytes", "Size of the kept answers.")
	runnerStates = newFigure(prometheus.GaugeValue, "runners", "Runners by label and state; one of several labels counts in each.", "label", "state")
	connections  = newFigure(prometheus.GaugeValue, "runner_connected", "1 if the runner was heard of lately.", "runner")
	busyRunners  = newFigure(prometheus.GaugeValue, "runner_busy", "1 if the runner has a job.", "runner")
	onDuty       = newFigure(prometheus.GaugeValue, "runner_on_duty", "0 if the runner is drained or in quarantine.", "runner")
	estimates    = newFigure(prometheus.UntypedValue, "estimate_off_seconds", "How far off it was when a waiting job was said to begin, and how long it was said to take.", "of")
	readyNow     = newFigure(prometheus.GaugeValue, "ready", "1 if /readyz says so.")
	leadsNow     = newFigure(prometheus.GaugeValue, "leads", "1 if this bot does the work, 0 if it stands by.")
	answersNow   = newFigure(prometheus.GaugeValue, "journal_answers", "1 if the journal answers.")
	copies       = newFigure(prometheus.GaugeValue, "journal_copies", "Copies of a stream on a cluster.", "stream", "state")
	diskFree     = newFigure(prometheus.GaugeValue, "data_free_bytes", "Room on the disk of the data folder.")
	diskSize     = newFigure(prometheus.GaugeValue, "data_size_bytes", "Size of that disk.")
)

// Describe sends nothing: what there is depends on runners and queues.
func (observer) Describe(chan<- *prometheus.Desc) {}

// Collect leaves out what cannot be had within a few seconds.
func (o observer) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	send := func(f figure, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(f.Desc, f.kind, value, labels...)
	}
	leads, _ := o.Journal.Leads()
	o.collectBot(send, leads)
	o.collectHub(send)
	o.collectStores(ctx, send)
	if leads { // runners are elsewhere, and are told of there
		o.collectRunners(send)
		off := o.Journal.Off()
		out <- histogram(estimates, off.Began, "begin")
		out <- histogram(estimates, off.Took, "duration")
		for class, waited := range o.Journal.Waited() {
			out <- histogram(queueWait, waited, cmp.Or(string(class), string(queue.PullRequest)))
		}
	}
	o.collectHealth(ctx, send)
	send(readyNow, truth(len(o.unready(ctx)) == 0))
	send(leadsNow, truth(leads))
}

func histogram(f figure, h queue.Histogram, label string) prometheus.Metric {
	within := map[float64]uint64{}
	for i, bound := range queue.Bounds {
		within[bound] = h.Within[i]
	}
	return prometheus.MustNewConstHistogram(f.Desc, h.Count, h.Sum, within, label)
}

type sender func(f figure, value float64, labels ...string)

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (o observer) collectBot(send sender, leads bool) {
	c := o.Bot.Counts()
	send(handled, float64(c.Handled))
	send(failed, float64(c.Failed))
	send(planned, float64(c.Planned))
	send(answered, float64(c.Answered))
	send(published, float64(c.Published))
	send(retried, float64(c.Retry))
	if !leads {
		return // when it last looked at everything is no news of one that stands by
	}
	at := 0.0
	if !c.Reconciled.IsZero() {
		at = float64(c.Reconciled.Unix())
	}
	send(reconciled, at)
}

func (o observer) collectHub(send sender) {
	s := o.Client.Stats()
	for r, n := range s.Requests {
		send(hubRequests, float64(n), string(r.Class), string(r.Ending))
	}
	send(hubRetries, float64(s.Retries))
	for reason, n := range s.Waits {
		send(hubWaits, float64(n), string(reason))
	}
	for reason, d := range s.Waited {
		send(hubWaited, d.Seconds(), string(reason))
	}
	for identity, n := range s.Remaining {
		send(hubRemaining, float64(n), identity)
	}
	for identity := range s.Shut {
		send(hubShut, 1, identity)
	}
	send(cacheHits, float64(s.CacheHits))
	send(cacheMisses, float64(s.CacheMisses))
	send(cacheBytes, float64(s.CacheBytes))
}

func (o observer) collectStores(ctx context.Context, send sender) {
	if list, err := o.Journal.Dead(ctx); err == nil {
		send(dead, float64(len(list)))
	}
	if since, err := o.Journal.Unhandled(ctx); err == nil {
		age := 0.0
		if !since.IsZero() {
			age = max(0, o.opt.Now().Sub(since).Seconds())
		}
		send(oldest, age)
	}
	for _, q := range o.Journal.Queues() {
		send(queueJobs, float64(q.Waiting), q.Label, "waiting")
		send(queueJobs, float64(q.Leased), q.Label, "leased")
		send(queueOldest, max(0, o.opt.Now().Sub(q.Oldest).Seconds()), q.Label)
	}
	if c, err := o.Ledger.Counts(ctx); err == nil {
		for outcome, n := range c.Outcomes {
			send(runsDone, float64(n), string(outcome))
		}
		for phase, n := range c.Phases {
			send(runsPhase, float64(n), string(phase))
		}
		send(changes, float64(c.Changes))
		send(openChanges, float64(c.Open))
		send(unsettled, float64(c.Unsettled))
	}
	send(ledgerSeq, float64(o.Ledger.Seq()))
	if lag, err := o.lag(ctx); err == nil {
		send(ledgerLag, float64(lag))
	}
}

// lag counts the events behind the ledger's; as a rule there is none to count.
func (o observer) lag(ctx context.Context) (int, error) {
	const most = 10000
	enough := errors.New("enough")
	n := 0
	_, err := o.Journal.Replay(ctx, o.Ledger.Seq(), func(journal.Event) error {
		if n++; n == most {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return n, err
}

// collectHealth tells how what everything hangs on is kept.
func (o observer) collectHealth(ctx context.Context, send sender) {
	_, err := o.Journal.Last(ctx, "ready")
	send(answersNow, truth(err == nil || errors.Is(err, journal.ErrNotFound)))
	if all, err := o.Journal.Health(ctx); err == nil {
		for _, c := range all {
			send(copies, float64(c.Current), c.Stream, "current")
			send(copies, float64(c.Behind), c.Stream, "behind")
			send(copies, float64(c.Away), c.Stream, "away")
		}
	}
	if free, size, err := room(o.opt.Data); err == nil {
		send(diskFree, free)
		send(diskSize, size)
	}
}

func (o observer) collectRunners(send sender) {
	type kind struct{ label, state string }
	count := map[kind]int{}
	for _, r := range o.Runners.Runners() {
		state := fleet.Listed{Job: r.Job, LastSeen: r.LastSeen, Duty: r.Duty}.State(o.opt.Now())
		for _, label := range r.Labels {
			count[kind{label, state}]++
		}
	}
	for k, n := range count {
		send(runnerStates, float64(n), k.label, k.state)
	}
	for _, r := range o.Runners.Runners() {
		send(connections, truth(o.here(r.LastSeen)), r.Name)
		send(busyRunners, truth(r.Job != ""), r.Name)
		send(onDuty, truth(r.Duty.Takes()), r.Name)
	}
}
