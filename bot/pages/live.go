package pages

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
)

// topics holds the pages that somebody is watching, by name. However many clients watch a page, it
// is rendered once a second.
type topics struct {
	mu  sync.Mutex
	all map[string]*topic
}

type topic struct {
	watchers map[*watcher]bool
	pieces   map[string]piece
	log      []string
	over     bool
	end      context.CancelFunc
}

// A piece is a part of a page, with the number of times that it changed.
type piece struct {
	text  string
	event []byte
	times int
}

// A watcher is one client of a topic, with the state that the client already has.
type watcher struct {
	news chan struct{} // buffers one signal that there is something new
	seen map[string]int
	log  int    // number of lines sent
	line string // the first line sent
}

// A snapshot is a page at one moment. A piece that is missing is unchanged.
type snapshot struct {
	pieces map[string]string
	log    []string
	over   bool
}

const (
	lookEvery = time.Second
	mostRooms = 1000 // topics watched at the same time
	keepAlive = 20 * time.Second
	stayFor   = 10 * time.Minute // then the browser reconnects and its rights are checked again
)

// watchRun streams an unfinished run as server-sent events: progress carries a piece of the page,
// log all lines so far, more the lines after them, and end says that there is a verdict to load.
func (s *Server) watchRun(w http.ResponseWriter, r *http.Request) {
	row, err := s.runOf(r.Context(), s.visit(r), r.PathValue("job"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.watch(w, r, "run "+row.Job, func(ctx context.Context) (snapshot, bool) { return s.seeRun(ctx, row.Job) })
}

// seeRun returns the run's state, or false if it is not available at the moment.
func (s *Server) seeRun(ctx context.Context, job string) (snapshot, bool) {
	row, err := s.Source.Run(ctx, job)
	if err != nil {
		return snapshot{}, false
	}
	if row.Phase == change.Done || row.Phase == change.Abandoned {
		return snapshot{over: true}, true
	}
	live := s.liveOf(rowOf(row, row.Repo), s.Source.Runners(), s.Source.Places())
	text, ok := s.piece("progress", live)
	return snapshot{pieces: map[string]string{"progress": text}, log: logLines(s.Source.Said(job))}, ok
}

// piece renders a part of a page.
func (s *Server) piece(name string, model any) (string, bool) {
	var text bytes.Buffer
	if err := s.templates.ExecuteTemplate(&text, name, model); err != nil {
		s.Log.Error("a piece of a page cannot be written", "piece", name, "err", err)
		return "", false
	}
	return strings.TrimSpace(text.String()), true
}

// watch streams a topic to a client until the topic is over.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, name string, see func(context.Context) (snapshot, bool)) {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		s.fail(w, r, fmt.Errorf("keeping a connection open: %w", err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	in, who := s.subscribe(name, see)
	if in == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer s.unsubscribe(name, in, who)
	beat, enough := time.NewTicker(keepAlive), time.NewTimer(stayFor)
	defer beat.Stop()
	defer enough.Stop()
	for {
		text, over := []byte(nil), false
		select {
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		case <-enough.C:
			return
		case <-who.news:
			text, over = s.newsFor(in, who)
		case <-beat.C:
			text = []byte(": still here\n\n")
		}
		// A client that does not read loses its connection, and may reconnect.
		if control.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil {
			return
		}
		if _, err := w.Write(text); err != nil || control.Flush() != nil || over {
			return
		}
	}
}

// subscribe adds a client to a topic. The first client starts the polling of the topic.
func (s *Server) subscribe(name string, see func(context.Context) (snapshot, bool)) (*topic, *watcher) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if s.live.all == nil {
		s.live.all = map[string]*topic{}
	}
	in := s.live.all[name]
	if in == nil {
		if len(s.live.all) >= mostRooms {
			return nil, nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		in = &topic{watchers: map[*watcher]bool{}, pieces: map[string]piece{}, end: cancel}
		s.live.all[name] = in
		go s.pollTopic(ctx, name, in, see)
	}
	who := &watcher{news: make(chan struct{}, 1), seen: map[string]int{}}
	in.watchers[who] = true
	who.news <- struct{}{} // the client has nothing yet
	return in, who
}

func (s *Server) unsubscribe(name string, in *topic, who *watcher) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	delete(in.watchers, who)
	if len(in.watchers) == 0 {
		in.end()
		if s.live.all[name] == in {
			delete(s.live.all, name)
		}
	}
}

// pollTopic polls for changes until the topic has no watchers or is over.
func (s *Server) pollTopic(ctx context.Context, name string, in *topic, see func(context.Context) (snapshot, bool)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if seen, ok := see(ctx); ok {
			s.live.mu.Lock()
			in.take(seen)
			if in.over && s.live.all[name] == in {
				delete(s.live.all, name) // a client that comes now starts a new topic
			}
			s.live.mu.Unlock()
			if seen.over {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// take stores a snapshot and signals all watchers if it differs from the last.
func (r *topic) take(seen snapshot) {
	changed := seen.over || !slices.Equal(seen.log, r.log)
	for name, text := range seen.pieces {
		if old, ok := r.pieces[name]; !ok || old.text != text {
			r.pieces[name] = piece{text, event(name, text), old.times + 1}
			changed = true
		}
	}
	r.log, r.over = seen.log, seen.over
	if !changed {
		return
	}
	for who := range r.watchers {
		select {
		case who.news <- struct{}{}:
		default: // already signalled
		}
	}
}

// newsFor returns everything that a watcher does not have yet, however long ago it last asked.
func (s *Server) newsFor(in *topic, who *watcher) (text []byte, over bool) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if in.over {
		return event("end", ""), true
	}
	for _, name := range slices.Sorted(maps.Keys(in.pieces)) {
		if p := in.pieces[name]; p.times != who.seen[name] {
			who.seen[name] = p.times
			text = append(text, p.event...)
		}
	}
	if len(in.log) == 0 {
		return text, false
	}
	kind := "more"
	// This is the first time, or a different runner starts over.
	if who.log == 0 || len(in.log) < who.log || in.log[0] != who.line {
		kind, who.log, who.line = "log", 0, in.log[0]
	}
	if who.log < len(in.log) {
		text = append(text, event(kind, strings.Join(in.log[who.log:], "\n"))...)
		who.log = len(in.log)
	}
	return text, false
}

// event formats a server-sent event. A carriage return ends a line in this format, too, so it is
// replaced: no data can start an event.
func event(name, data string) []byte {
	data = strings.NewReplacer("\r\n", "\ndata: ", "\n", "\ndata: ", "\r", "\ndata: ").Replace(data)
	return []byte("event: " + name + "\ndata: " + data + "\n\n")
}
