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

// topics are the pages that somebody watches, by what they show. However many watch
// one, it is looked at once a second and written once.
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

// A piece of a page, and how often it was another.
type piece struct {
	text  string
	event []byte
	times int
}

// A watcher is somebody in a room, and what they have.
type watcher struct {
	news chan struct{} // holds one: there is something new
	seen map[string]int
	log  int    // lines
	line string // the first of them
}

// A snapshot is a page at one moment. What has no piece is as it was.
type snapshot struct {
	pieces map[string]string
	log    []string
	over   bool
}

const (
	lookEvery = time.Second
	mostRooms = 1000 // that are watched at a time
	keepAlive = 20 * time.Second
	stayFor   = 10 * time.Minute // then a browser comes back, and is asked again who it is
)

// watchRun sends what a run does while it is under way, as server-sent events: progress
// with a piece of the page, log with all lines so far, more with those after them, and end
// when there is a verdict to load.
func (s *Server) watchRun(w http.ResponseWriter, r *http.Request) {
	row, err := s.runOf(r.Context(), s.visit(r), r.PathValue("job"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.watch(w, r, "run "+row.Job, func(ctx context.Context) (snapshot, bool) { return s.seeRun(ctx, row.Job) })
}

// seeRun is the run's state; false where it is not known at the moment.
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

// piece is part of a page.
func (s *Server) piece(name string, model any) (string, bool) {
	var text bytes.Buffer
	if err := s.templates.ExecuteTemplate(&text, name, model); err != nil {
		s.Log.Error("a piece of a page cannot be written", "piece", name, "err", err)
		return "", false
	}
	return strings.TrimSpace(text.String()), true
}

// watch has somebody see what there is to see until it is over.
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
		// Whoever does not read loses the connection, and may come back.
		if control.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil {
			return
		}
		if _, err := w.Write(text); err != nil || control.Flush() != nil || over {
			return
		}
	}
}

// subscribe lets somebody into a room. The first who comes has it looked at.
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
	who.news <- struct{}{} // whatever is there is new
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

// pollTopic sees what is new until nobody is in the room or it is over.
func (s *Server) pollTopic(ctx context.Context, name string, in *topic, see func(context.Context) (snapshot, bool)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if seen, ok := see(ctx); ok {
			s.live.mu.Lock()
			in.take(seen)
			if in.over && s.live.all[name] == in {
				delete(s.live.all, name) // who comes now gets a room of their own
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

// take notes a sight, and calls everybody if it is another.
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
		default: // is called already
		}
	}
}

// newsFor is what somebody does not have yet, however long they did not ask.
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
	if who.log == 0 || len(in.log) < who.log || in.log[0] != who.line { // the first, or another runner begins anew
		kind, who.log, who.line = "log", 0, in.log[0]
	}
	if who.log < len(in.log) {
		text = append(text, event(kind, strings.Join(in.log[who.log:], "\n"))...)
		who.log = len(in.log)
	}
	return text, false
}

// event is in the form of server-sent ones, for which a carriage return ends a line too:
// nothing in the data is an event of its own.
func event(name, data string) []byte {
	data = strings.NewReplacer("\r\n", "\ndata: ", "\n", "\ndata: ", "\r", "\ndata: ").Replace(data)
	return []byte("event: " + name + "\ndata: " + data + "\n\n")
}
