package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/policies/ident"
)

// Tune requests a search for a faster variant or toggle of one kernel. Empty fields have defaults.
type Tune struct {
	Kernel     string   `json:"kernel,omitempty"` // folder or name; "" means the only kernel that the change touches
	Device     string   `json:"device,omitempty"` // of the policy; "" means the first of them
	Shapes     []string `json:"shapes,omitempty"`
	Variants   []string `json:"variants,omitempty"`
	Minutes    int      `json:"minutes,omitempty"` // of measuring
	Seconds    int      `json:"seconds,omitempty"` // in addition to the minutes
	Candidates int      `json:"candidates,omitempty"`
	Proposer   string   `json:"proposer,omitempty"`
}

// Bisect requests a search for the commit that made one kernel slower or wrong. Without a range it
// searches the commits of the pull request.
type Bisect struct {
	Kernel string   `json:"kernel,omitempty"`
	Device string   `json:"device,omitempty"` // as in Tune
	Good   string   `json:"good,omitempty"`
	Bad    string   `json:"bad,omitempty"`
	Shapes []string `json:"shapes,omitempty"`
	Rounds int      `json:"rounds,omitempty"`
}

// Limits and defaults of searches.
const (
	DefaultMinutes, maxMinutes       = 10, 60
	DefaultCandidates, maxCandidates = 100, 500
	DefaultProposer                  = "local"
	minBisectRounds, maxBisectRounds = 4, 200
	minBudget                        = 30 * time.Second
)

// proposers are the built-in proposers of a runner.
var proposers = []string{"grid", "random", "genetic", "local"}

func (Tune) Name() string   { return "tune" }
func (Bisect) Name() string { return "bisect" }

// Budget is the time of measuring.
func (t Tune) Budget() time.Duration {
	if t.Minutes == 0 && t.Seconds == 0 {
		return DefaultMinutes * time.Minute
	}
	return time.Duration(t.Minutes)*time.Minute + time.Duration(t.Seconds)*time.Second
}

func (t Tune) String() string {
	words := []string{"/tune"}
	add := func(word string, there bool) {
		if there {
			words = append(words, word)
		}
	}
	add(t.Kernel, t.Kernel != "")
	words = append(words, deviceWords(t.Device)...)
	add("shapes="+strings.Join(t.Shapes, ","), len(t.Shapes) > 0)
	add("variants="+strings.Join(t.Variants, ","), len(t.Variants) > 0)
	switch {
	case t.Seconds > 0:
		add("budget="+strconv.Itoa(60*t.Minutes+t.Seconds)+"s", true)
	case t.Minutes > 0:
		add("budget="+strconv.Itoa(t.Minutes)+"m", true)
	}
	add("candidates="+strconv.Itoa(t.Candidates), t.Candidates > 0)
	add("proposer="+t.Proposer, t.Proposer != "")
	return strings.Join(words, " ")
}

func (b Bisect) String() string {
	words := []string{"/bisect"}
	if b.Kernel != "" {
		words = append(words, b.Kernel)
	}
	words = append(words, deviceWords(b.Device)...)
	if b.Good != "" {
		words = append(words, b.Good+".."+b.Bad)
	}
	if len(b.Shapes) > 0 {
		words = append(words, "shapes="+strings.Join(b.Shapes, ","))
	}
	if b.Rounds > 0 {
		words = append(words, "rounds="+strconv.Itoa(b.Rounds))
	}
	return strings.Join(words, " ")
}

func readTune(arguments string) (Command, error) {
	var t Tune
	err := readWords(arguments, []string{"shapes", "variants", "budget", "candidates", "proposer"}, &t.Kernel, &t.Device, func(key, value string) error {
		switch key {
		case "shapes":
			t.Shapes = strings.Split(value, ",")
			return checkShapes(t.Shapes)
		case "variants":
			t.Variants = strings.Split(value, ",")
			for _, v := range t.Variants {
				if !ident.IsName(v) {
					return fmt.Errorf("variants: %s is not a name (write letters, digits, `.`, `_` and `-`, with commas and no blanks)", code(v))
				}
			}
			if len(t.Variants) > maxShapes {
				return fmt.Errorf("variants: %d names (write at most %d)", len(t.Variants), maxShapes)
			}
		case "budget":
			d, err := time.ParseDuration(value)
			if err != nil || d < minBudget || d > maxMinutes*time.Minute || d%time.Second != 0 {
				return fmt.Errorf("budget: %s is not a time of measuring (write %.0fs to %dm, such as 90s)", code(value), minBudget.Seconds(), maxMinutes)
			}
			t.Minutes, t.Seconds = int(d/time.Minute), int(d%time.Minute/time.Second)
		case "candidates":
			n, ok := wholeNumber(value)
			if t.Candidates = int(n); !ok || n < 1 || n > maxCandidates {
				return fmt.Errorf("candidates: %s is not a number of candidates (write 1 to %d)", code(value), maxCandidates)
			}
		case "proposer":
			if t.Proposer = value; !slices.Contains(proposers, value) {
				return fmt.Errorf("proposer: %s is not one of %s (only `kernelgate tune` takes a program)", code(value), strings.Join(proposers, ", "))
			}
		}
		return nil
	})
	return t, err
}

func readBisect(arguments string) (Command, error) {
	var b Bisect
	var words []string
	for _, word := range strings.FieldsFunc(arguments, space) {
		good, bad, ranged := strings.Cut(word, "..")
		if !ranged || strings.Contains(word, "=") {
			words = append(words, word)
			continue
		}
		if b.Good != "" {
			return nil, errors.New("two ranges of commits are given (write one: GOOD..BAD)")
		}
		if good == "" || bad == "" {
			return nil, fmt.Errorf("%s is not a range of commits (write GOOD..BAD, such as `v1.2..main`)", code(word))
		}
		for _, ref := range []string{good, bad} {
			if !isRef(ref) {
				return nil, fmt.Errorf("%s is not a range of commits: %s is not a ref (write branches, tags or commits, such as `v1.2..main`)", code(word), code(ref))
			}
		}
		b.Good, b.Bad = good, bad
	}
	err := readWords(strings.Join(words, " "), []string{"shapes", "rounds"}, &b.Kernel, &b.Device, func(key, value string) error {
		if key == "shapes" {
			b.Shapes = strings.Split(value, ",")
			return checkShapes(b.Shapes)
		}
		n, ok := wholeNumber(value)
		if b.Rounds = int(n); !ok || n < minBisectRounds || n > maxBisectRounds {
			return fmt.Errorf("rounds: %s is not a number of rounds for one commit (write %d to %d)", code(value), minBisectRounds, maxBisectRounds)
		}
		return nil
	})
	return b, err
}

// readWords reads one kernel, one device and options, each at most once.
func readWords(arguments string, options []string, kernel, device *string, set func(key, value string) error) error {
	given := map[string]bool{}
	words, err := takeDevice(strings.FieldsFunc(arguments, space), device)
	if err != nil {
		return err
	}
	for _, word := range words {
		key, value, option := strings.Cut(word, "=")
		if !option {
			name := strings.TrimSuffix(word, "/")
			switch {
			case !kernelName.MatchString(name):
				return fmt.Errorf("kernel: %s is not a kernel (write its name, or its folder such as `kernels/sdpa`)", code(word))
			case *kernel != "":
				return fmt.Errorf("kernel: %s is a second kernel (a search takes one kernel)", code(word))
			}
			*kernel = name
			continue
		}
		key = strings.ToLower(key)
		switch {
		case !slices.Contains(options, key):
			return fmt.Errorf("%s is not an argument (write %s)", code(key+"="), listed(options))
		case given[key]:
			return fmt.Errorf("%s is given twice (delete one)", code(key))
		}
		given[key] = true
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}
