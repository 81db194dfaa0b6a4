package pages

import (
	"sync"
	"time"
)

// An allowance bounds how many requests to GitHub the visitors of the pages can cause. Anybody with
// a GitHub account can log in, and every page view asks GitHub which repositories the visitor can
// read. These requests count against the bot's own limit of 5,000 per hour.
const (
	window          = time.Hour
	mostQuestions   = 3000 // by all visitors in a window
	mostOfStrangers = 500  // by visitors who, as far as is known, can read nothing
	mostOfOne       = 500  // by one visitor
	mostOfAStranger = 200
)

// An allowance counts requests. Its zero value is ready to use.
type allowance struct {
	mu        sync.Mutex
	since     time.Time
	all       int
	strangers int
	by        map[string]int  // by login; has at most mostQuestions entries
	readers   map[string]bool // visitors who could read something in the previous window
	now       map[string]bool // visitors who could read something in this window
	told      bool            // whether a refusal was logged in this window
}

// take counts a request about a visitor's rights, and reports whether it may be made. The caller
// must log the first refusal of a window.
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

// reads records that a visitor can read something.
func (a *allowance) reads(login string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(now)
	a.now[login] = true
}

// begin starts a new window if the last one is over. The caller holds the lock.
func (a *allowance) begin(now time.Time) {
	if a.by != nil && now.Sub(a.since) < window {
		return
	}
	a.since, a.all, a.strangers, a.told = now, 0, 0, false
	a.by, a.readers, a.now = map[string]int{}, a.now, map[string]bool{}
}
