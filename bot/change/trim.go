package change

import "slices"

// A state is read, copied and written whole with every event of its change. So what it keeps
// is bounded, however long a pull request stays open. The journal has every event for good,
// and the ledger every run and every command. No rule counts what is dropped here: package
// attempts counts attempts, and the overrides and approvals that hold have
// fields of their own.
const (
	maxPast      = 50  // earlier attempts
	maxExtraRuns = 50  // measurements for information
	maxSearches  = 20  // tunings and bisections
	maxApproved  = 50  // commits of a fork
	maxChecks    = 200 // on earlier heads
	// maxCommands is how many commands are kept. Those whose reply GitHub does not show yet
	// are kept up to maxUnreplied, those that nobody has answered always.
	maxCommands, maxUnreplied = 100, 1000
)

// retire moves runs to the past.
func (s *State) retire(runs ...Run) {
	s.Past = newest(append(s.Past, runs...), maxPast)
}

// newest is the last so many of a list.
func newest[T any](list []T, most int) []T {
	return slices.Delete(list, 0, max(0, len(list)-most))
}

// dropOldest deletes the oldest of a list that may go, until no more than so many are left.
func dropOldest[T any](list []T, most int, mayGo func(T) bool) []T {
	extra := len(list) - most
	return slices.DeleteFunc(list, func(x T) bool {
		if extra <= 0 || !mayGo(x) {
			return false
		}
		extra--
		return true
	})
}

// trimExtraRuns makes room for measurements. It is called when some are added, and drops none
// that a runner is still needed for.
func (s *State) trimExtraRuns() {
	s.ExtraRuns = dropOldest(s.ExtraRuns, maxExtraRuns, func(r Run) bool { return !r.Unfinished() })
}

// trimSearches makes room for a search.
func (s *State) trimSearches() {
	s.Searches = dropOldest(s.Searches, maxSearches, func(r Run) bool { return !r.Unfinished() })
}

// trimCommands makes room for a command.
func (s *State) trimCommands() {
	before := s.Commands
	s.Commands = dropOldest(slices.Clone(before), maxUnreplied, func(c Command) bool { return c.Answered })
	s.Commands = dropOldest(s.Commands, maxCommands, func(c Command) bool {
		return c.Answered && (c.Replied != 0 || c.Comment == 0) // a button has no comment to reply to
	})
	if len(s.Commands) == len(before) {
		return
	}
	s.CommandsBefore += len(before) - len(s.Commands)
	for _, c := range before {
		if slices.ContainsFunc(s.Commands, func(kept Command) bool { return kept.ID == c.ID }) || c.Comment == 0 {
			continue
		}
		if s.CommandsUpTo == nil {
			s.CommandsUpTo = map[On]int64{}
		}
		s.CommandsUpTo[c.On] = max(s.CommandsUpTo[c.On], c.Comment)
	}
}

// trimChecks forgets concluded checks of heads that nothing else here is about. Should the
// head move back to one of them, GitHub gets a new check of the same name, which then counts.
func (s *State) trimChecks() {
	if len(s.Checks) <= maxChecks {
		return
	}
	known := map[string]bool{s.Facts.Head: true}
	for _, r := range s.Past {
		known[r.Head] = true
	}
	for key, posted := range s.Checks {
		if _, sha := splitCheckKey(key); posted.Done && !known[sha] {
			delete(s.Checks, key)
		}
	}
}
