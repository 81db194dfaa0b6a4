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
	by        map[int64]int  // by user; has at most mostQuestions entries
	readers   map[int64]bool // visitors who could read something in the previous window
	now       map[int64]bool // visitors who could read something in this window
	told      bool           // whether a refusal was logged in this window
}

// take counts a request about a visitor's rights, and reports whether it may be made. The caller
// must log the first refusal of a window.
func (a *allowance) take(user int64, now time.Time) (may, log bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(now)
	stranger := !a.readers[user] && !a.now[user]
	most := mostOfOne
	if stranger {
		most = mostOfAStranger
	}
	if a.by[user] >= most || a.all >= mostQuestions || stranger && a.strangers >= mostOfStrangers {
		log, a.told = !a.told, true
		return false, log
	}
	a.all++
	a.by[user]++
	if stranger {
		a.strangers++
	}
	return true, false
}

// reads records that a visitor can read something.
func (a *allowance) reads(user int64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(now)
	a.now[user] = true
}

// begin starts a new window if the last one is over. The caller holds the lock.
func (a *allowance) begin(now time.Time) {
	if a.by != nil && now.Sub(a.since) < window {
		return
	}
	a.since, a.all, a.strangers, a.told = now, 0, 0, false
	a.by, a.readers, a.now = map[int64]int{}, a.now, map[int64]bool{}
}
