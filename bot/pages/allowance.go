package pages

import (
	"sync"
	"time"
)

// Anybody with an account at GitHub can log in, and every look at a page asks GitHub about repositories with the requests
// that the bot has for its own work, 5,000 an hour. An allowance bounds how many of them people can spend.
const (
	window          = time.Hour
	mostQuestions   = 3000 // of all people in a window
	mostOfStrangers = 500  // of those who can read nothing, as far as is known
	mostOfOne       = 500  // of anybody
	mostOfAStranger = 200
)

// An allowance counts questions. Its zero value is ready.
type allowance struct {
	mu        sync.Mutex
	since     time.Time
	all       int
	strangers int
	by        map[string]int  // by login; no more than mostQuestions
	readers   map[string]bool // who could read something in this window or the last
	now       map[string]bool // in this window
	told      bool            // that it is spent
}

// take counts a question about somebody's rights, and tells whether it may be asked. The first refusal of a window is to be
// logged.
func (a *allowance) take(login string, now time.Time) (may, log bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(now)
	stranger := !a.readers[login] && !a.now[login]
	most := mostOfOne
	if stranger {
		most = mostOfAStranger
	}
	if a.by[login] >= most || a.all >= mostQuestions || stranger && a.strangers >= mostOfStrangers {
		log, a.told = !a.told, true
		return false, log
	}
	a.all++
	a.by[login]++
	if stranger {
		a.strangers++
	}
	return true, false
}

// reads says that somebody can read something.
func (a *allowance) reads(login string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(now)
	a.now[login] = true
}

// begin is called with the lock held.
func (a *allowance) begin(now time.Time) {
	if a.by != nil && now.Sub(a.since) < window {
		return
	}
	a.since, a.all, a.strangers, a.told = now, 0, 0, false
	a.by, a.readers, a.now = map[string]int{}, a.now, map[string]bool{}
}
