package tune

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A Space is what a search may choose: a variant, and the value of each toggle. Toggles that are not
// searched keep the value that the variant gives them.
type Space struct {
	Kernel   string              `json:"kernel"`
	Variants []string            `json:"variants"`
	Toggles  []Toggle            `json:"toggles"`
	Own      map[string]Settings `json:"own"`       // the value of every toggle in each variant, as the manifest has it
	Start    string              `json:"incumbent"` // the variant that every candidate is paired with
	// Configurations are the configurations of @triton.autotune, in words. The values of the toggle autotune
	// are indexes of this list.
	Configurations []string `json:"configurations,omitempty"`
}

// A Toggle is one dimension of the space.
type Toggle struct {
	Name   string `json:"name"`
	Values []int  `json:"values"`
	Layer  string `json:"layer"` // structure or micro
}

// Settings are values of toggles by their names.
type Settings map[string]int

// A Candidate is one way to build the kernel.
type Candidate struct {
	Variant string   `json:"variant"`
	Toggles Settings `json:"toggles,omitempty"` // those left out have the variant's own value
	// Files are whole source files by their path in the folder of the sources. They replace or add
	// files of the kernel.
	Files map[string]string `json:"files,omitempty"`
	Note  string            `json:"note,omitempty"` // for people: why the candidate was proposed
	// Configuration is the configuration of @triton.autotune in words, if it is not the manifest's. The
	// search fills it in.
	Configuration string `json:"configuration,omitempty"`
}

// NewSpace reads the space that a manifest declares. No variants or no toggles mean all of them.
func NewSpace(m *manifest.Manifest, start string, variants, toggles []string) (Space, error) {
	s := Space{Kernel: m.Name, Variants: variants, Own: map[string]Settings{}, Start: start}
	if len(variants) == 0 {
		s.Variants = m.VariantNames()
	}
	known := m.VariantNames()
	for i, name := range s.Variants {
		if !slices.Contains(known, name) {
			return s, usage.Errorf("--variant: %s has no variant %q (it has %s)", m.Name, name, strings.Join(known, ", "))
		}
		if slices.Contains(s.Variants[:i], name) {
			return s, usage.Errorf("--variant: %s is named twice (delete one)", name)
		}
		s.Own[name] = m.ToggleValues(name)
	}
	for _, t := range m.Toggles {
		if len(toggles) == 0 || slices.Contains(toggles, t.Name) {
			s.Toggles = append(s.Toggles, Toggle{Name: t.Name, Values: slices.Clone(t.Values), Layer: string(t.Layer)})
		}
	}
	for _, name := range toggles {
		if name == Autotune && m.Autotune != nil && !m.TriesAll() {
			continue // only a build tells which configurations the kernel offers
		}
		if !slices.ContainsFunc(s.Toggles, func(t Toggle) bool { return t.Name == name }) {
			var names []string
			for _, t := range m.Toggles {
				names = append(names, t.Name)
			}
			return s, usage.Errorf("--toggle: %s has no toggle %q (it has %s)", m.Name, name, cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
	if err := m.Try(start); err != nil {
		return s, usage.Errorf("the incumbent: %w", err)
	}
	return s, nil
}

// Size is the number of points; +Inf if they cannot be counted.
func (s *Space) Size() float64 {
	n := float64(len(s.Variants))
	for _, t := range s.Toggles {
		n *= float64(len(t.Values))
	}
	return n
}

// settings is the value of every toggle of a candidate.
func (s *Space) settings(c Candidate) Settings {
	all := maps.Clone(s.Own[c.Variant])
	if all == nil {
		all = Settings{}
	}
	maps.Copy(all, c.Toggles)
	return all
}

// ID identifies a candidate: its variant with every toggle written out, in order, and a hash of the
// files that it brings.
func (s *Space) ID(c Candidate) string {
	return Name(c.Variant, s.settings(c)) + filesHash(c.Files)
}

// Short is a name of the candidate for people and for --variant of kernelgate check: toggles that
// have the variant's own value are left out.
func (s *Space) Short(c Candidate) string {
	differ := Settings{}
	for name, value := range s.settings(c) {
		if own, ok := s.Own[c.Variant][name]; !ok || own != value {
			differ[name] = value
		}
	}
	return Name(c.Variant, differ) + filesHash(c.Files)
}

// Name is a variant with toggles behind it, sorted, as package manifest reads it.
func Name(variant string, toggles Settings) string {
	words := []string{variant}
	for _, name := range slices.Sorted(maps.Keys(toggles)) {
		words = append(words, fmt.Sprintf("%s=%d", name, toggles[name]))
	}
	return strings.Join(words, ",")
}

// filesHash is empty if there are no files.
func filesHash(files map[string]string) string {
	if len(files) == 0 {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %q\n", name, files[name])
	}
	return "+" + hex.EncodeToString(h.Sum(nil)[:4])
}

// Check says what is wrong with a candidate that a proposer made.
func (s *Space) Check(c Candidate) error {
	if !slices.Contains(s.Variants, c.Variant) {
		return fmt.Errorf("variant: %q is not searched (write one of %s)", c.Variant, strings.Join(s.Variants, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Toggles)) {
		i := slices.IndexFunc(s.Toggles, func(t Toggle) bool { return t.Name == name })
		if i < 0 {
			return fmt.Errorf("toggles.%s: it is not searched (write one of %s)", name, strings.Join(s.toggleNames(), ", "))
		}
		// A variant may have a value that the search does not vary.
		if values := s.Toggles[i].Values; !slices.Contains(values, c.Toggles[name]) {
			return fmt.Errorf("toggles.%s: %d is none of its values %v", name, c.Toggles[name], values)
		}
	}
	return nil
}

func (s *Space) toggleNames() []string {
	names := []string{}
	for _, t := range s.Toggles {
		names = append(names, t.Name)
	}
	return names
}

// layer are the searched toggles of a layer.
func (s *Space) layer(name string) []Toggle {
	return slices.DeleteFunc(slices.Clone(s.Toggles), func(t Toggle) bool { return t.Layer != name })
}

// The layers of a search.
const (
	structure = "structure"
	micro     = "micro"
)

// combine lists a candidate with all values of some toggles, the last toggle fastest, but no more
// than so many candidates.
func combine(c Candidate, toggles []Toggle, most int) []Candidate {
	all := []Candidate{c}
	for _, t := range toggles {
		var next []Candidate
		for _, from := range all {
			for _, v := range t.Values {
				if len(next) < most {
					next = append(next, from.with(t.Name, v))
				}
			}
		}
		all = next
	}
	return all
}

// with is the candidate with a different value of one toggle.
func (c Candidate) with(toggle string, value int) Candidate {
	c.Toggles = maps.Clone(c.Toggles)
	if c.Toggles == nil {
		c.Toggles = Settings{}
	}
	c.Toggles[toggle] = value
	return c
}

// most bounds what is listed at once.
func (s *Space) most() int { return int(min(s.Size(), math.MaxInt16)) }
