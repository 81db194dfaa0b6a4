package pages

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// rooms are the runs that somebody watches. However many watch one, it is looked at
// once a second and written once.
type rooms struct {
	mu  sync.Mutex
	all map[string]*room
}

type room struct {
	watchers map[chan []byte]bool
	last     []byte
	log      []byte   // what it was at, as an event
	steps    []string // the same by line
	end      context.CancelFunc
}

const (
	lookEvery = time.Second
	mostRooms = 1000 // runs that are watched at a time
	keepAlive = 20 * time.Second
	mostSteps = 100 // lines of a log that are kept
)

// watch sends what a run does while it is under way, as server-sent events: progress
// with a piece of the page, log with what it was at since somebody watches, and end when
// there is a verdict to load.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	row, err := s.runOf(r.Context(), s.visit(r), r.PathValue("job"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		s.fail(w, r, fmt.Errorf("keeping a connection open: %w", err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	news, leave := s.join(row.Job)
	if news == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer leave()
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		var text []byte
		select {
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		case more, open := <-news:
			if !open {
				return
			}
			text = more
		case <-beat.C:
			text = []byte(": still here\n\n")
		}
		// Whoever does not read loses the connection, and may come back.
		if control.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil {
			return
		}
		if _, err := w.Write(text); err != nil || control.Flush() != nil {
			return
		}
		if bytes.HasPrefix(text, []byte("event: end")) {
			return
		}
	}
}

// join lets somebody watch a job. The first who does has it looked at.
func (s *Server) join(job string) (news chan []byte, leave func()) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if s.live.all == nil {
		s.live.all = map[string]*room{}
	}
	r := s.live.all[job]
	if r == nil {
		if len(s.live.all) >= mostRooms {
			return nil, nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		r = &room{watchers: map[chan []byte]bool{}, end: cancel}
		s.live.all[job] = r
		go s.look(ctx, job, r)
	}
	news = make(chan []byte, 4)
	r.watchers[news] = true
	for _, text := range [][]byte{r.last, r.log} {
		if text != nil {
			news <- text
		}
	}
	return news, func() {
		s.live.mu.Lock()
		defer s.live.mu.Unlock()
		delete(r.watchers, news)
		if len(r.watchers) == 0 {
			r.end()
			if s.live.all[job] == r {
				delete(s.live.all, job)
			}
		}
	}
}

// look tells the room what is new until nobody is in it or the run is over.
func (s *Server) look(ctx context.Context, job string, r *room) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		text, over := s.news(ctx, job)
		s.live.mu.Lock()
		if text != nil && !bytes.Equal(text, r.last) {
			r.last = text
			r.tell(text)
		}
		if step := s.step(job); !over && step != "" && r.note(s.Now(), step) {
			r.log = event("log", strings.Join(r.steps, "\n"))
			r.tell(r.log)
		}
		if over && s.live.all[job] == r {
			delete(s.live.all, job)
			for watcher := range r.watchers {
				close(watcher)
			}
			clear(r.watchers)
		}
		s.live.mu.Unlock()
		if over {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tell sends everybody an event. Whoever is too slow hears as much from the next one.
func (r *room) tell(text []byte) {
	for watcher := range r.watchers {
		select {
		case watcher <- text:
		default:
		}
	}
}

// note adds a line to the log, unless it is the last one again.
func (r *room) note(now time.Time, step string) bool {
	if n := len(r.steps); n > 0 && strings.HasSuffix(r.steps[n-1], "  "+step) {
		return false
	}
	r.steps = append(r.steps, now.UTC().Format(time.TimeOnly)+"  "+step)
	r.steps = r.steps[max(0, len(r.steps)-mostSteps):]
	return true
}

// step is what a run is at, in one line.
func (s *Server) step(job string) string {
	p := s.progress(job)
	if p == nil {
		return ""
	}
	return report.Plain(strings.Trim(string(p.Gate)+": "+p.Text, ": "))
}

// event is in the form of server-sent ones, for which a carriage return ends a line too:
// nothing in the data is an event of its own.
func event(name, data string) []byte {
	data = strings.NewReplacer("\r\n", "\ndata: ", "\n", "\ndata: ", "\r", "\ndata: ").Replace(data)
	return []byte("event: " + name + "\ndata: " + data + "\n\n")
}

// news is the run's state as an event.
func (s *Server) news(ctx context.Context, job string) (text []byte, over bool) {
	row, err := s.Source.Run(ctx, job)
	if err != nil {
		return nil, ctx.Err() != nil
	}
	if row.Phase == change.Done || row.Phase == change.Abandoned {
		return event("end", ""), true
	}
	var piece bytes.Buffer
	if err := s.templates.ExecuteTemplate(&piece, "progress", &RunPage{Row: rowOf(row, row.Repo), Progress: s.progress(job)}); err != nil {
		s.Log.Error("progress cannot be written", "job", job, "err", err)
		return nil, false
	}
	return event("progress", strings.TrimSpace(piece.String())), false
}
