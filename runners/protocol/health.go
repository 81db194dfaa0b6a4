package protocol

import (
	"strings"
	"time"
	"unicode"
)

// Version is the protocol that this program speaks; a runner names its own when it asks for a job. Every change that the
// other side must understand gets a new number:
//
//	3  a runner writes the number of the machine code into its rounds
const Version = 3

// Oldest is the oldest protocol that a bot serves.
const Oldest = 3

// GPUHeader says which of its host's GPUs a runner's request is about, by number. A runner of one GPU leaves it out; to the
// bot, a runner of several is one for each: gpu1/0, gpu1/1.
const GPUHeader = "Kernelgate-Gpu"

// A Health is what a runner says of its host.
type Health struct {
	At time.Time `json:"at"`
	// GPU is the one that it measures on; nil on a host without.
	GPU *GPU `json:"gpu,omitempty"`
	// Unfit is why the runner itself would not measure here, until it has passed a self-test; "" is as a rule.
	Unfit string `json:"unfit,omitempty"`
	// Test is the last self-test, nil before there was one.
	Test *SelfTest `json:"self_test,omitempty"`
}

// A GPU is how a GPU is. What the driver does not tell is zero, or nil.
type GPU struct {
	Index       int      `json:"index"` // as nvidia-smi counts
	UUID        string   `json:"uuid"`
	Name        string   `json:"name"`
	Driver      string   `json:"driver,omitempty"`
	SMClock     int      `json:"sm_mhz,omitempty"`
	MaxSMClock  int      `json:"sm_max_mhz,omitempty"`
	MemoryClock int      `json:"memory_mhz,omitempty"`
	Celsius     int      `json:"celsius,omitempty"`
	Watts       float64  `json:"watts,omitempty"`
	Throttled   []string `json:"throttled,omitempty"`  // why its clocks are lower than they could be, idling and locked clocks aside
	ECCErrors   *uint64  `json:"ecc_errors,omitempty"` // that could not be repaired, since the driver was loaded
	Xids        []Xid    `json:"xids,omitempty"`       // the last ones since the runner was started, oldest first
}

// An Xid is a fault that the driver has reported.
type Xid struct {
	At   time.Time `json:"at"` // when the runner heard of it
	Text string    `json:"text"`
}

// A SelfTest is how a runner measured what is known: a kernel against itself, whose two sides must not differ (A/A), and
// the same kernel against its reference and its time on this host before.
type SelfTest struct {
	At      time.Time `json:"at"` // when it began
	Seconds float64   `json:"seconds"`
	Passed  bool      `json:"passed"`
	Why     string    `json:"why,omitempty"` // it did not
	Kernel  string    `json:"kernel"`
	// Difference is between the sides, as a share of the time: 0.01 is one percent. Low and High are its interval.
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Micros     float64 `json:"micros"`                 // the kernel's time
	Usual      float64 `json:"usual_micros,omitempty"` // the median of its times here before; 0 while there are too few
}

// What is kept of a Health.
const (
	maxText = 500
	MaxXids = 8
)

// Bounded cuts what a runner may say at length.
func (h Health) Bounded() Health {
	h.Unfit = cut(h.Unfit)
	if h.Test != nil {
		t := *h.Test
		t.Why, t.Kernel = cut(t.Why), cut(t.Kernel)
		h.Test = &t
	}
	if h.GPU != nil {
		g := *h.GPU
		g.UUID, g.Name, g.Driver = cut(g.UUID), cut(g.Name), cut(g.Driver)
		g.Throttled = cutAll(g.Throttled)
		g.Xids = append([]Xid(nil), g.Xids[max(0, len(g.Xids)-MaxXids):]...)
		for i := range g.Xids {
			g.Xids[i].Text = cut(g.Xids[i].Text)
		}
		h.GPU = &g
	}
	return h
}

// cut keeps a line of text: what a runner says is shown in terminals too.
func cut(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxText {
		return string(r[:maxText]) + "…"
	}
	return s
}

func cutAll(list []string) []string {
	const most = 16
	list = append([]string(nil), list[:min(len(list), most)]...)
	for i := range list {
		list[i] = cut(list[i])
	}
	return list
}
