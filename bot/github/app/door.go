package app

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/policies/usage"
)

// errLate ends the wait for the browser.
var errLate = errors.New("no browser came back from GitHub in time: start again, and delete the App at GitHub if it was created")

// A door is the server on the loopback address from which the browser starts and to which it
// returns. A client that does not know the key sees no page, and so cannot learn the state: other
// people may use this host, too.
type door struct {
	job        *job
	host       string // the only Host header that is answered
	key, state string
	pages      pages

	stranger sync.Once

	mu   sync.Mutex // allows one exchange at a time
	over bool
	done chan error // receives the result of Run
}

// welcome waits for a browser that comes back from GitHub with a code.
func (j *job) welcome(ctx context.Context) error {
	listener, err := net.Listen("tcp", j.opt.Listen)
	if err != nil {
		return usage.Errorf("--listen: %w (remove it for a free port)", err)
	}
	d, err := newDoor(j, listener.Addr().String())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second}
	server.SetKeepAlivesEnabled(false)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.close(fmt.Errorf("waiting for the browser: %w", err))
		}
	}()
	_, port, err := net.SplitHostPort(d.host)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	d.say("%s", j.greeting(d.start(), port, d.host))
	if j.opt.Open != nil {
		if err := j.opt.Open(d.start()); err != nil {
			d.say("(%v: open the page yourself)\n", err)
		}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, j.opt.Wait, errLate)
	defer cancel()
	select {
	case err = <-d.done:
	case <-waiting.Done():
		d.close(context.Cause(waiting)) // after an exchange that is in progress
		err = <-d.done
	}
	// The last page may still be on its way to the browser.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if server.Shutdown(ending) != nil {
		_ = server.Close()
	}
	return err
}

func newDoor(j *job, host string) (*door, error) {
	d := &door{job: j, host: host, key: j.opt.Random(), state: j.opt.Random(), done: make(chan error, 1)}
	m, err := j.manifest("http://" + host + backPath)
	if err != nil {
		return nil, err
	}
	d.pages, err = newPages(j, m, d.state)
	return d, err
}

// backPath is the path to which GitHub redirects the browser.
const backPath = "/back"

func (d *door) start() string { return "http://" + d.host + "/" + d.key }

// say prints a message. It may be called while a request is served.
func (d *door) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.job.opt.Out, format, args...)
}

// close ends the wait, unless it has already ended.
func (d *door) close(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end(why)
}

func (d *door) end(why error) {
	if !d.over {
		d.over = true
		d.done <- why
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host != d.host: // a name of another site that was made to resolve to this server
		d.pages.stop(w, http.StatusForbidden, "This is not the address that the terminal shows.", "Open exactly that one.")
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		d.pages.stop(w, http.StatusMethodNotAllowed, "This page accepts no data.", "Open the page that the terminal shows.")
	case r.URL.Path == backPath:
		d.back(w, r)
	case same(r.URL.Path, "/"+d.key):
		d.pages.begin(w)
	default:
		d.pages.stop(w, http.StatusNotFound, "There is no such page.", "Open the page that the terminal shows.")
	}
}

// back handles the browser's return from GitHub.
func (d *door) back(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !same(q.Get("state"), d.state) {
		d.stranger.Do(func() {
			d.say("Refused a browser that came back from a different setup. Still waiting.\n")
		})
		d.pages.stop(w, http.StatusForbidden, "This answer belongs to a different setup: nothing was written.", "Open the page that the terminal shows, and start there.")
		return
	}
	if !codePattern.MatchString(q.Get("code")) {
		d.pages.stop(w, http.StatusBadRequest, "GitHub sent no code: nothing was written.", "Open the page that the terminal shows, and start there.")
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		d.pages.stop(w, http.StatusGone, "This setup has ended.", "The terminal shows its result.")
		return
	}
	made, err := d.job.exchange(r.Context(), q.Get("code"))
	switch {
	case errors.Is(err, errSpent):
		d.end(err)
		d.pages.stop(w, http.StatusGone, "GitHub refuses the code: it was used already or is older than an hour. Nothing was written.", "Start kernelgate setup again.")
		return
	case err != nil:
		fmt.Fprintf(d.job.opt.Out, "%v. Reload the page in the browser to try again; the code is good for an hour.\n", err)
		d.pages.stop(w, http.StatusBadGateway, "GitHub did not send the secrets of the App. Nothing was written.", "Reload this page to try again: the code is valid for an hour. The terminal shows the reason.")
		return
	}
	err = d.job.keep(made)
	d.end(err)
	if err != nil {
		d.pages.stop(w, http.StatusInternalServerError, "The App exists, but its files could not be written.", "You can close this page: the terminal shows where the secrets are.")
		return
	}
	d.pages.finish(w, d.job, made)
}
