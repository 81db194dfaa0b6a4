package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// counters are the server's metrics, in a registry of their own.
type counters struct {
	registry *prometheus.Registry
	webhooks *prometheus.CounterVec
	accepted prometheus.Counter
	verified atomic.Uint64 // events
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

// Describe sends nothing: what there is depends on runners and queues.
func (observer) Describe(chan<- *prometheus.Desc) {}

// Collect leaves out what cannot be had within a few seconds.
func (o observer) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	send := sender(out)
	leads := o.Journal.Leads()
	o.collectBot(send, leads)
	o.collectHub(send)
	o.collectStores(ctx, send)
	if leads { // runners are elsewhere, and are told of there
		o.collectRunners(send)
		off := o.Jobs.ForecastError()
		for of, h := range map[string]scheduler.Histogram{"begin": off.Began, "duration": off.Took} {
			send.histogram("estimate_off_seconds", "Error of the estimates of when a waiting job begins and how long it takes.", h, labels{"of": of})
		}
		for class, waited := range o.Jobs.Waited() {
			send.histogram("queue_wait_seconds", "How long jobs waited until a runner first had them.", waited, labels{"class": cmp.Or(string(class), string(scheduler.PullRequest))})
		}
	}
	o.collectHealth(ctx, send)
	o.collectCertificates(send)
	send.gauge("ready", "1 if /readyz says so.", truth(len(o.unready(ctx)) == 0), nil)
	send.gauge("leads", "1 if this bot is the leader, 0 if it is on standby.", truth(leads), nil)
}

// A sender takes figures, each with what it is.
type sender chan<- prometheus.Metric

type labels = prometheus.Labels

func (s sender) counter(name, help string, value float64, l labels) {
	s <- prometheus.MustNewConstMetric(describe(name, help, l), prometheus.CounterValue, value)
}

func (s sender) gauge(name, help string, value float64, l labels) {
	s <- prometheus.MustNewConstMetric(describe(name, help, l), prometheus.GaugeValue, value)
}

func (s sender) histogram(name, help string, h scheduler.Histogram, l labels) {
	within := map[float64]uint64{}
	for i, bound := range scheduler.Bounds {
		within[bound] = h.Within[i]
	}
	s <- prometheus.MustNewConstHistogram(describe(name, help, l), h.Count, h.Sum, within)
}

func describe(name, help string, l labels) *prometheus.Desc {
	return prometheus.NewDesc("kernelgate_"+name, help, nil, l)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (o observer) collectBot(send sender, leads bool) {
	c := o.Bot.Counts()
	send.counter("deliveries_handled_total", "Attempts to handle a delivery.", float64(c.Handled), nil)
	send.counter("deliveries_failed_total", "Attempts that failed and are retried.", float64(c.Failed), nil)
	send.counter("changes_planned_total", "Changes that were planned.", float64(c.Planned), nil)
	send.counter("commands_answered_total", "Commands on pull requests that were answered.", float64(c.Answered), nil)
	send.counter("publications_total", "Checks and comments that were published or updated.", float64(c.Published), nil)
	send.counter("publication_retries_total", "Publications that failed and are retried.", float64(c.Retry), nil)
	send.counter("publications_unseen_total", "Publications that failed because GitHub did not show the commit or the pull request yet.", float64(c.Unseen), nil)
	if !leads {
		return // when it last looked at everything is no news of one that stands by
	}
	send.gauge("publications_waiting", "Changes whose publication waits for a rate limit.", float64(o.Bot.PublicationsWaiting()), nil)
	at := 0.0
	if !c.Reconciled.IsZero() {
		at = float64(c.Reconciled.Unix())
	}
	send.gauge("reconcile_interval_seconds", "How often all open changes are reconciled, as configured.", time.Duration(o.opt.Reconcile).Seconds(), nil)
	send.gauge("last_reconciled_timestamp_seconds", "When all open changes were last reconciled; 0 before the first time.", at, nil)
}

func (o observer) collectHub(send sender) {
	s := o.Client.Stats()
	for r, n := range s.Requests {
		send.counter("hub_requests_total", "Requests to GitHub.", float64(n), labels{"class": string(r.Class), "outcome": string(r.Ending)})
	}
	wrote := 0.0
	if !s.Wrote.IsZero() {
		wrote = float64(s.Wrote.Unix())
	}
	send.gauge("hub_last_write_timestamp_seconds", "When GitHub last took a check or a comment; 0 before the first time.", wrote, nil)
	silent := 0.0
	if since := o.ready.silentSince(); !since.IsZero() {
		silent = max(0, o.opt.Now().Sub(since).Seconds())
	}
	send.gauge("hub_silent_seconds", "For how long GitHub has not answered whether it accepts the bot; 0 if it answers.", silent, nil)
	send.counter("hub_retries_total", "Requests to GitHub that were retried after a fault.", float64(s.Retries), nil)
	for reason, n := range s.Waits {
		send.counter("hub_waits_total", "Pauses because of a rate limit of GitHub.", float64(n), labels{"reason": string(reason)})
	}
	for reason, d := range s.Waited {
		send.counter("hub_wait_seconds_total", "Time spent in those pauses.", d.Seconds(), labels{"reason": string(reason)})
	}
	for identity, n := range s.Remaining {
		send.gauge("hub_remaining", "Requests left in this hour.", float64(n), labels{"identity": identity})
	}
	for identity := range s.Shut {
		send.gauge("hub_shut", "1 where an IP allow list refuses this machine.", 1, labels{"identity": identity})
	}
	send.counter("hub_cache_hits_total", "Answers that GitHub confirmed as unchanged.", float64(s.CacheHits), nil)
	send.counter("hub_cache_misses_total", "Answers that GitHub sent in full.", float64(s.CacheMisses), nil)
	send.gauge("hub_cache_bytes", "Size of the cached answers.", float64(s.CacheBytes), nil)
}

func (o observer) collectStores(ctx context.Context, send sender) {
	if list, err := o.Journal.Dead(ctx); err == nil {
		send.gauge("deliveries_dead", "Deliveries that were given up after several attempts.", float64(len(list)), nil)
	}
	if since, err := o.Journal.Unhandled(ctx); err == nil {
		age := 0.0
		if !since.IsZero() {
			age = max(0, o.opt.Now().Sub(since).Seconds())
		}
		send.gauge("deliveries_oldest_seconds", "Age of the oldest delivery that is not handled yet; 0 if there is none.", age, nil)
	}
	for _, q := range o.Jobs.Backlogs() {
		for state, n := range map[string]int{"waiting": q.Waiting, "leased": q.Leased} {
			send.gauge("queue_jobs", "Jobs that are not finished.", float64(n), labels{"label": q.Label, "state": state})
		}
		send.gauge("queue_oldest_seconds", "Age of the oldest job that is not finished.", max(0, o.opt.Now().Sub(q.Oldest).Seconds()), labels{"label": q.Label})
	}
	if c, err := o.Ledger.Counts(ctx); err == nil {
		for outcome, n := range c.Outcomes {
			send.gauge("runs", "Runs in the ledger that are done, by outcome.", float64(n), labels{"outcome": string(outcome)})
		}
		for phase, n := range c.Phases {
			send.gauge("runs_by_phase", "Runs in the ledger.", float64(n), labels{"phase": string(phase)})
		}
		send.gauge("changes", "Changes in the ledger.", float64(c.Changes), nil)
		send.gauge("changes_open", "Pull requests and merge groups that are open.", float64(c.Open), nil)
		send.gauge("changes_unsettled", "Changes with work left.", float64(c.Unsettled), nil)
	}
	if since, err := o.Ledger.Unchecked(ctx); err == nil {
		age := 0.0
		if !since.IsZero() {
			age = max(0, o.opt.Now().Sub(since).Seconds())
		}
		send.gauge("changes_unchecked_oldest_seconds", "Age of the last event of the open pull request or merge group that has waited longest for a check on its head; 0 if there is none.", age, nil)
	}
	send.gauge("ledger_seq", "Sequence of the last event in the ledger.", float64(o.Ledger.Seq()), nil)
	if lag, err := o.lag(ctx); err == nil {
		send.gauge("ledger_lag_events", "Events in the journal that the ledger does not have yet; 10000 is that many or more.", float64(lag), nil)
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
	send.gauge("journal_answers", "1 if the journal answers.", truth(err == nil || errors.Is(err, journal.ErrNotFound)), nil)
	if all, err := o.Journal.Health(ctx); err == nil {
		for _, c := range all {
			for state, n := range map[string]int{"current": c.Current, "behind": c.Behind, "away": c.Away} {
				send.gauge("journal_copies", "Copies of a stream on a cluster.", float64(n), labels{"stream": c.Stream, "state": state})
			}
		}
	}
	send.gauge("journal_verified_events", "Events that were verified since the start of the bot; 0 until all are.", float64(o.counts.verified.Load()), nil)
	send.gauge("journal_writable", "1 if the journal accepts writes.", truth(o.Journal.Writable(ctx) == nil), nil)
	for _, sp := range o.Journal.Space(ctx) {
		server := labels{"server": sp.Server}
		send.gauge("journal_server_answers", "1 if the NATS server reports how full it is.", truth(sp.Err == nil), server)
		if sp.Err == nil {
			send.gauge("journal_used_bytes", "Bytes that the NATS server stores on its disk.", float64(sp.Used), server)
			send.gauge("journal_limit_bytes", "Bytes that the NATS server may store; when it is full it accepts no writes.", float64(sp.Limit), server)
		}
	}
	if free, size, err := room(o.opt.Data); err == nil {
		send.gauge("data_free_bytes", "Free space on the disk of the data folder.", free, nil)
		send.gauge("data_size_bytes", "Size of that disk.", size, nil)
	}
}

func (o observer) collectRunners(send sender) {
	type kind struct{ label, state string }
	count := map[kind]int{}
	for _, r := range o.Runners.Runners() {
		state := r.State(o.opt.Now())
		for _, label := range r.Labels {
			count[kind{label, state}]++
		}
		runner := labels{"runner": r.Name}
		send.gauge("runner_connected", "1 if the runner was seen recently.", truth(o.here(r.LastSeen)), runner)
		send.gauge("runner_busy", "1 if the runner has a job.", truth(r.Job != ""), runner)
		send.gauge("runner_on_duty", "0 if the runner is drained or in quarantine.", truth(r.Availability.Takes()), runner)
	}
	send.counter("bundles_missing_total", "How often the bundle of a live job was missing in the journal; the job is redelivered.", float64(o.Runners.BundlesMissing()), nil)
	for k, n := range count {
		send.gauge("runners", "Runners by label and state; a runner with several labels counts for each label.", float64(n), labels{"label": k.label, "state": k.state})
	}
}
