package watch

import "time"

// A Pin is a kernel that a watch compares with an earlier release than the newest one.
type Pin struct {
	Folder string `json:"folder"`
	Device string `json:"device,omitempty"`
	Tag    string `json:"tag"`
	Base   string `json:"base"`
}

// Pin returns the release that the next watch must compare the kernel with, if it is not the newest one.
// base is the commit of the newest release, and since is the first watch that found it.
//
// Whoever may push a tag can make any commit the newest release, also the commit that is slow. So a slowdown
// ends only against the release that it was proven against, and a new release becomes the base of a kernel
// after one more look at the old one. A person accepts a slowdown by closing the issue, which everybody sees.
func (s *State) Pin(base string, since time.Time) (Pin, bool) {
	l := s.Last
	if l == nil || l.Against != Release {
		return Pin{}, false
	}
	switch r := s.Regression; {
	case r != nil && !s.Issue.Dismissed && r.First.Against == Release:
		l = &r.First
	case s.Noise > 0: // the next look decides whether this is a slowdown
	case l.Due.Before(since): // no look has compared with the old release since the new one exists
	default:
		return Pin{}, false
	}
	return Pin{Folder: s.Folder, Device: s.Device, Tag: l.Tag, Base: l.Base}, l.Base != base
}

// elsewhere reports whether a look compares with a different release than the one that a slowdown was proven
// against, so that it says nothing about the slowdown. The best state is no choice of people: the bot
// computes it from all merges.
func (s *State) elsewhere(l Look) bool {
	r := s.Regression
	return r != nil && l.Against == Release && r.First.Against == Release && l.Base != r.First.Base
}
