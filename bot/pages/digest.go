package pages

import (
	"context"
	"encoding/json"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// caches hold data parsed from blobs. The name of a blob identifies its content, so entries never
// become stale.
type caches struct {
	digests *lru.Cache[string, *digest]
	drawn   *lru.Cache[[2]string, *RunPage]
}

func newCaches() (c caches, err error) {
	if c.digests, err = lru.New[string, *digest](10_000); err == nil {
		c.drawn, err = lru.New[[2]string, *RunPage](64)
	}
	return c, err
}

// A digest is the part of a verdict that a history needs. A history has many of them.
type digest struct {
	Outcome      gates.Outcome        `json:"outcome"`
	Reason       gates.Reason         `json:"reason"`
	Provenance   gates.Provenance     `json:"provenance"`
	Device       gates.Device         `json:"device"`
	Weighted     *gates.WeightedSpeed `json:"weighted"`
	WeightedWarm *gates.WeightedSpeed `json:"weighted_warm"`
	Comparisons  []gates.Comparison   `json:"comparisons"`
	Resources    []gates.ResourceRow  `json:"resources"`
	Rivals       []gates.Rival        `json:"rivals"`
	Builds       []struct {
		Variant string       `json:"variant"`
		Parts   []gates.Part `json:"parts"`
	} `json:"builds"`
}

// step returns the verdict that compares one variant with another. It is nil if the verdict
// compares two commits of one variant, or a work tree, which nobody can look up.
func (d *digest) step() *gates.Verdict {
	if d == nil {
		return nil
	}
	v := &gates.Verdict{
		Outcome: d.Outcome, Reason: d.Reason, Provenance: d.Provenance, Device: d.Device, Weighted: d.Weighted, WeightedWarm: d.WeightedWarm, Comparisons: d.Comparisons, Resources: d.Resources,
	}
	for _, b := range d.Builds {
		v.Builds = append(v.Builds, gates.Build{Variant: b.Variant, Parts: b.Parts})
	}
	from, to := &v.Provenance.Base.Variant, &v.Provenance.Head.Variant
	// The change made a different variant the default.
	if n := len(v.Builds); n > 1 && *from == "" && *to == "" {
		*from, *to = v.Builds[0].Variant, v.Builds[n-1].Variant
	}
	if *from == "" || *to == "" || *from == *to {
		return nil
	}
	return v
}

// digest returns the digest of a stored verdict, or nil.
func (s *Server) digest(ctx context.Context, name string) *digest {
	if name == "" {
		return nil
	}
	if d, ok := s.caches.digests.Get(name); ok {
		return d
	}
	d := &digest{}
	if err := s.blob(ctx, name, func(data []byte) error { return json.Unmarshal(data, d) }); err != nil {
		return nil
	}
	s.caches.digests.Add(name, d)
	return d
}

// comparison returns the timing of a shape, or nil if it was not timed.
func (d *digest) comparison(shape string) *gates.Comparison {
	if d == nil {
		return nil
	}
	return (&gates.Verdict{Weighted: d.Weighted, WeightedWarm: d.WeightedWarm, Comparisons: d.Comparisons}).ComparisonOf(shape)
}

// spread returns the fastest sample of a shape and the 90th percentile.
func (d *digest) spread(shape string) (low, high float64) {
	if c := d.comparison(shape); c != nil && c.Candidate != nil {
		return c.Candidate.Min, c.Candidate.P90
	}
	return 0, 0
}

// moved names the changes of device and software between two runs.
func moved(a, b *digest) string {
	if a == nil || b == nil {
		return ""
	}
	return report.Moved(a.Device, b.Device, a.Provenance, b.Provenance)
}

// drawn returns everything that is derived from a run's evidence and verdict, with the charts.
func (s *Server) drawn(ctx context.Context, row ledger.RunRow) *RunPage {
	key := [2]string{row.Verdict, row.Evidence}
	if p, ok := s.caches.drawn.Get(key); ok {
		return p
	}
	p := &RunPage{Files: map[string]bool{}}
	if row.Verdict != "" {
		p.Verdict = &gates.Verdict{}
		if err := s.blob(ctx, row.Verdict, func(data []byte) error { return json.Unmarshal(data, p.Verdict) }); err != nil {
			p.Verdict, p.Missing = nil, "The full verdict is no longer stored."
			s.Log.Warn("a stored verdict cannot be shown", "job", row.Job, "err", err)
		}
		p.Files["verdict"] = p.Verdict != nil
	}
	if row.Evidence != "" {
		err := s.blob(ctx, row.Evidence, func(data []byte) (err error) {
			p.Evidence, err = gates.ParseEvidence("evidence", data)
			return err
		})
		if err != nil {
			p.Evidence, p.Missing = nil, "The evidence is no longer stored, so there are no pictures of it."
			s.Log.Warn("stored evidence cannot be shown", "job", row.Job, "err", err)
		}
		p.Files["evidence"] = p.Evidence != nil
	}
	p.draw()
	if p.Missing == "" && row.Verdict != "" {
		s.caches.drawn.Add(key, p)
	}
	return p
}
