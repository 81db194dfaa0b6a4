package watch

import (
	"maps"
	"time"
)

// A Class is what explains a slowdown.
type Class string

const (
	Code      Class = "code"
	Toolchain Class = "toolchain"
	Driver    Class = "driver"
	Device    Class = "device" // or the host
	Noise     Class = "noise"  // nothing does
)

// A Form says which comparison shows a slowdown.
type Form string

const (
	// Behind means that the head is slower than the base, in the same rounds.
	Behind Form = "behind"
	// Shifted means that head and base are both slower than in an earlier look on the same kind of device.
	Shifted Form = "shifted"
)

// shift is the smallest slowdown of the base, at every shape, that counts as Shifted. It is large, because
// times of different days have no common rounds.
const shift = 0.05

// patience is the number of looks in a row that must neither prove nor show a slowdown before a proven
// slowdown is over. One look that proves its absence is enough.
const patience = 2

// A Regression is a slowdown that is proven and not over.
type Regression struct {
	Form   Form       `json:"form"`
	Class  Class      `json:"class"`
	First  Look       `json:"first"`            // the look that found it
	Look   Look       `json:"look"`             // the newest look that shows it
	Before *Look      `json:"before,omitempty"` // the last look without it; nil if there is none
	Bisect *Bisection `json:"bisect,omitempty"` // nil before the bot has asked for a search
}

// Range returns the commits between which the slowdown appeared. It reports false if the code is not the
// cause.
func (r *Regression) Range() (good, bad string, ok bool) {
	if r.Form != Behind || r.Class != Code {
		return "", "", false
	}
	good, bad = r.First.Base, r.First.Head
	if r.Before != nil && r.Before.Base == r.First.Base {
		good = r.Before.Head
	}
	return good, bad, good != bad
}

// A Bisection is the search for the commit that caused a slowdown.
type Bisection struct {
	Good string `json:"good"`
	Bad  string `json:"bad"`
	// First is the first bad commit. It is empty before the search has ended, and if the search found none.
	First string `json:"first,omitempty"`
	// Last is the last good commit before it. Commits between the two could not be judged.
	Last    string  `json:"last,omitempty"`
	Between int     `json:"between,omitempty"`
	Error   float64 `json:"error,omitempty"`  // probability that First is wrong
	Unsure  bool    `json:"unsure,omitempty"` // a step is not proven
	// Failed says that the search ended without a commit.
	Failed bool   `json:"failed,omitempty"`
	Change string `json:"change,omitempty"` // the watch that it is part of
	Job    string `json:"job,omitempty"`    // whose page has the details
}

// Pending reports whether the search has no result yet.
func (b *Bisection) Pending() bool { return b.First == "" && !b.Failed }

// An Ending says why a regression is over.
type Ending string

const (
	Gone      Ending = "gone"      // a look proves its absence
	Unproven  Ending = "unproven"  // several looks in a row neither prove nor show it
	Unwatched Ending = "unwatched" // the kernel is not watched any more
)

// A Past is a regression that is over, with the reason.
type Past struct {
	Regression
	Ending Ending `json:"ending"`
	By     Look   `json:"by"` // the look that ended it; the last look if none did
}

// An Issue is the kernel's issue on GitHub.
type Issue struct {
	Number    int    `json:"number,omitempty"` // 0: there is none yet
	Open      bool   `json:"open,omitempty"`
	Digest    string `json:"digest,omitempty"`    // of its title and text
	Dismissed bool   `json:"dismissed,omitempty"` // somebody closed it: it stays closed until the regression is over
	Refused   int    `json:"refused,omitempty"`   // HTTP status with which GitHub refused to write the issue; 0 if it did not
	RefusedIn string `json:"refused_in,omitempty"`
}

// A State is what is known about one kernel.
type State struct {
	Seq    uint64 `json:"seq"` // of the last event; 0 before the first
	Repo   int64  `json:"repo"`
	Folder string `json:"folder"`
	Device string `json:"device,omitempty"` // of the policy, if it asks for several

	Last       *Look           `json:"last,omitempty"`
	Sound      *Look           `json:"sound,omitempty"`  // the last look that proves that no shape is slower
	Levels     map[string]Look `json:"levels,omitempty"` // by kind of device: the last look without a shift of the base
	Regression *Regression     `json:"regression,omitempty"`
	Ended      *Past           `json:"ended,omitempty"`   // the last regression, until its issue is closed
	Unclear    int             `json:"unclear,omitempty"` // looks in a row that do not prove the regression
	Noise      int             `json:"noise,omitempty"`   // looks in a row with a slowdown that nothing explains
	Issue      Issue           `json:"issue"`
}

// An Action is what the bot must do with the kernel's issue.
type Action string

const (
	Nothing Action = ""
	Write   Action = "write" // the issue must be open and show the regression
	Close   Action = "close"
)

// Action returns what the bot must do with the kernel's issue.
func (s *State) Action() Action {
	switch {
	case s.Regression != nil && !s.Issue.Dismissed:
		return Write
	case s.Regression == nil && s.Ended != nil && s.Issue.Number != 0 && s.Issue.Open:
		return Close
	}
	return Nothing
}

// Wants reports whether the bot should search for the commit that caused the regression, and between which
// two commits.
func (s *State) Wants() (good, bad string, ok bool) {
	if s.Regression == nil || s.Regression.Bisect != nil {
		return "", "", false
	}
	return s.Regression.Range()
}

// look adds a look.
func (s *State) look(l Look) {
	if s.Last != nil && !l.Due.After(s.Last.Due) {
		return // the state already has a later look
	}
	if s.elsewhere(l) {
		if !s.Issue.Dismissed {
			s.Last = &l
			return
		}
		// A person closed the issue, and a new release has the slowdown: it is the new level.
		s.Regression, s.Unclear, s.Issue.Dismissed = nil, 0, false
	}
	result := l.Result()
	switch {
	case result == Slower:
		s.behind(l)
	case s.Regression != nil && s.Regression.Form == Behind && result == Sound:
		s.end(Gone, l)
	case s.Regression != nil && s.Regression.Form == Behind && l.Worst().Speed < 1-l.Slower:
		s.Unclear = 0 // the figures still show the slowdown, without a proof
		s.renew(l)
	case s.Regression != nil && s.Regression.Form == Behind:
		if s.Unclear++; s.Unclear >= patience {
			s.end(Unproven, l)
		}
	}
	if result != Slower {
		s.Noise = 0
		s.level(l)
	}
	if result == Sound {
		s.Sound = &l
	}
	s.Last = &l
}

// behind adds a look that proves that the head is behind.
func (s *State) behind(l Look) {
	s.Unclear = 0
	if s.Regression != nil && s.Regression.Form == Behind {
		s.renew(l)
		return
	}
	class := s.classify(l)
	if class == Noise {
		// Chance gives two such looks in a row once in a million times. So something differs that the
		// evidence does not record, and only the machine is left.
		if s.Noise++; s.Noise < patience {
			return
		}
		class = Device
	}
	s.begin(Regression{Form: Behind, Class: class, First: l, Look: l, Before: s.Sound})
}

// classify explains a slowdown by the differences from the last sound look. If there is no sound look, the
// cause is the code: head and base are built by the same compiler and run on the same machine.
func (s *State) classify(l Look) Class {
	if s.Sound == nil {
		return Code
	}
	return explain(Differences(*s.Sound, l))
}

// explain returns the class of the first difference that can explain a slowdown.
func explain(all []Difference) Class {
	class := map[Part]Class{PartSources: Code, PartBase: Code, PartCompiler: Toolchain, PartDriver: Driver, PartDevice: Device, PartHost: Device}
	if len(all) > 0 {
		return class[all[0].Part]
	}
	return Noise
}

// level compares the base's times with those of earlier looks at the same commit on the same kind of
// device.
func (s *State) level(l Look) {
	before, known := s.Levels[l.kind()]
	if known && before.Base == l.Base && shifted(before, l) {
		if s.Regression != nil {
			if s.Regression.Form == Shifted {
				s.renew(l)
			}
			return
		}
		var outside []Difference
		for _, d := range Differences(before, l) {
			if d.Part != PartSources { // the base's times do not depend on the head
				outside = append(outside, d)
			}
		}
		if class := explain(outside); class != Noise {
			s.begin(Regression{Form: Shifted, Class: class, First: l, Look: l, Before: &before})
		}
		return
	}
	if r := s.Regression; r != nil && r.Form == Shifted {
		if r.First.kind() != l.kind() || !timed(l) {
			return // the look says nothing about the shift
		}
		s.end(Gone, l)
	}
	if timed(l) {
		s.Levels = maps.Clone(s.Levels)
		if s.Levels == nil || len(s.Levels) >= maxKinds {
			s.Levels = map[string]Look{}
		}
		s.Levels[l.kind()] = l
	}
}

// maxKinds is the maximum number of kinds of devices in Levels.
const maxKinds = 20

func timed(l Look) bool {
	for _, s := range l.Shapes {
		if s.Baseline > 0 {
			return true
		}
	}
	return false
}

// shifted reports whether the base is slower than before at every shape that both looks timed.
func shifted(before, after Look) bool {
	was := map[[2]string]float64{}
	for _, s := range before.Shapes {
		was[[2]string{s.Name, s.Dims}] = s.Baseline
	}
	common := 0
	for _, s := range after.Shapes {
		base := was[[2]string{s.Name, s.Dims}]
		if base == 0 || s.Baseline == 0 {
			continue
		}
		common++
		if s.Baseline <= base*(1+shift) {
			return false
		}
	}
	return common > 0
}

func (s *State) begin(r Regression) {
	s.Regression, s.Ended, s.Unclear, s.Noise = &r, nil, 0, 0
	s.Issue.Dismissed = false
}

// renew stores a newer look that shows the regression.
func (s *State) renew(l Look) {
	r := *s.Regression
	r.Look = l
	s.Regression = &r
}

func (s *State) end(how Ending, by Look) {
	if s.Regression == nil {
		return
	}
	s.Ended, s.Regression, s.Unclear = &Past{Regression: *s.Regression, Ending: how, By: by}, nil, 0
	if s.Issue.Dismissed {
		s.Issue.Dismissed, s.Ended = false, nil
	}
}

// Since returns when the regression was found; zero if there is none.
func (s *State) Since() time.Time {
	if s.Regression == nil {
		return time.Time{}
	}
	return s.Regression.First.Due
}
