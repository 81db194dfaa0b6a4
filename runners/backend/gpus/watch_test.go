package gpus

import (
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A card is a GPU whose figures a test sets.
type card struct {
	reasons nvml.Reasons
	ecc     uint64
	err     error
	xids    []nvml.Xid
}

func (c *card) Clock(nvml.Clock) (int, error)      { return 1980, c.err }
func (c *card) MaxClock(nvml.Clock) (int, error)   { return 1990, c.err }
func (c *card) Reasons() (nvml.Reasons, error)     { return c.reasons, c.err }
func (c *card) Temperature() (int, error)          { return 61, c.err }
func (c *card) Power() (float64, error)            { return 300, c.err }
func (c *card) UncorrectedErrors() (uint64, error) { return c.ecc, c.err }

func (c *card) Next(time.Duration) (nvml.Xid, bool, error) {
	if len(c.xids) == 0 {
		return 0, false, nil
	}
	x := c.xids[0]
	c.xids = c.xids[1:]
	return x, true, nil
}

// TestUnfit checks that hardware faults make a GPU unfit. Faults that a kernel may have caused, a
// moment of heat and the power limit do not: no pull request can put a runner into quarantine.
func TestUnfit(t *testing.T) {
	const heat, limit = nvml.HwThermalSlowdown, nvml.SwPowerCap
	for name, c := range map[string]struct {
		looks []card
		want  string // of the last look
	}{
		"well":                      {[]card{{}, {}}, ""},
		"fallen off the bus":        {[]card{{xids: []nvml.Xid{31, 79, 45}}}, "reported Xid 79 (GPU has fallen off the bus)"},
		"a kernel's fault":          {[]card{{xids: []nvml.Xid{13, 31, 43, 45, 8, 109, 69}}}, ""},
		"heard of once":             {[]card{{xids: []nvml.Xid{48}}, {}}, ""},
		"more memory errors":        {[]card{{ecc: 3}, {ecc: 5}}, "has 2 new memory errors"},
		"old memory errors":         {[]card{{ecc: 3}, {ecc: 3}}, ""},
		"fewer, after a reset":      {[]card{{ecc: 3}, {ecc: 0}}, ""},
		"a moment of heat":          {[]card{{reasons: heat}}, ""},
		"heat, gone, heat":          {[]card{{reasons: heat}, {}, {reasons: heat}}, ""},
		"heat that stays":           {[]card{{reasons: heat}, {reasons: heat | limit}}, "is slowed down: hw-thermal-slowdown (look"},
		"at the power limit":        {[]card{{reasons: limit}, {reasons: limit}, {reasons: limit}}, ""},
		"does not answer":           {[]card{{err: nvml.GPUIsLost}}, "does not answer: NVML_ERROR_GPU_IS_LOST"},
		"a figure that is not told": {[]card{{err: nvml.NotSupported}, {err: nvml.NotSupported}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := &card{}
			w := &Watch{gpu: mixed[0], device: now, xids: now}
			var unfit string
			for _, look := range c.looks {
				*now = look
				_, unfit = w.Look(time.Unix(1, 0))
			}
			if c.want == "" && unfit != "" || !strings.Contains(unfit, c.want) {
				t.Errorf("%q, want %q", unfit, c.want)
			}
		})
	}
}

// TestLook checks that the figures are the GPU's, and that the last Xids are kept.
func TestLook(t *testing.T) {
	now := &card{reasons: nvml.SwPowerCap | nvml.GPUIdle}
	w := &Watch{gpu: mixed[2], driver: "580", device: now, xids: now}
	for i := range 20 {
		now.xids = append(now.xids, nvml.Xid(i))
	}
	g, _ := w.Look(time.Unix(7, 0))
	if g.UUID != "GPU-2c" || g.Index != 2 || g.Name != "NVIDIA H200" || g.Driver != "580" || g.SMClock != 1980 || g.MaxSMClock != 1990 || g.MemoryClock != 1980 ||
		g.Celsius != 61 || g.Watts != 300 || strings.Join(g.Throttled, " ") != "sw-power-cap" || g.ECCErrors == nil || *g.ECCErrors != 0 {
		t.Errorf("%+v", g)
	}
	if len(g.Xids) != protocol.MaxXids || g.Xids[7].Text != "Xid 19" || !g.Xids[7].At.Equal(time.Unix(7, 0)) {
		t.Errorf("%+v", g.Xids)
	}
	if again, _ := w.Look(time.Unix(8, 0)); len(again.Xids) != protocol.MaxXids {
		t.Errorf("later: %+v", again.Xids)
	}
}
