package tune

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// Autotune is the name of a toggle for the configurations of @triton.autotune. Its values are their indexes
// in Space.Configurations.
const Autotune = "autotune"

// tuned adds the configurations of the kernel to the space, as values of a toggle. It leaves out
// configurations that a manifest cannot name.
func (s *Space) tuned(offered, chosen []string) error {
	if slices.ContainsFunc(s.Toggles, func(t Toggle) bool { return t.Name == Autotune }) {
		return usage.Errorf("%s has a toggle named %s, which is the name of the configurations of @triton.autotune (rename it)", s.Kernel, Autotune)
	}
	t := Toggle{Name: Autotune, Layer: micro}
	for _, words := range offered {
		if _, ok := writtenConfiguration(words); ok && !slices.Contains(s.Configurations, words) {
			t.Values = append(t.Values, len(s.Configurations))
			s.Configurations = append(s.Configurations, words)
		}
	}
	if len(t.Values) < 2 {
		s.Configurations = nil
		return nil
	}
	s.Toggles = append(s.Toggles, t)
	if i := slices.Index(s.Configurations, strings.Join(chosen, "\n")); i >= 0 { // the manifest chooses one for all sizes
		for _, own := range s.Own {
			own[Autotune] = i
		}
	}
	return nil
}

// configuration returns the configuration of a candidate in words. It returns "" for the configuration of the
// manifest.
func (s *Space) configuration(c Candidate) string {
	i, ok := c.Toggles[Autotune]
	if own, known := s.Own[c.Variant][Autotune]; !ok || known && own == i || i < 0 || i >= len(s.Configurations) {
		return ""
	}
	return s.Configurations[i]
}

// untuned returns the candidate without its configuration.
func (c Candidate) untuned() Candidate {
	if _, ok := c.Toggles[Autotune]; ok {
		c.Toggles = maps.Clone(c.Toggles)
		delete(c.Toggles, Autotune)
	}
	return c
}

var configurationValue = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(-?[0-9]{1,9}|True|False)$`)

// writtenConfiguration returns a configuration in the form of the manifest's key autotune. It reports whether
// a manifest can name the configuration: all its values must be whole numbers or booleans.
func writtenConfiguration(words string) (string, bool) {
	var values []string
	for _, word := range strings.Split(strings.TrimSuffix(words, ", its pre_hook is not called"), ", ") {
		match := configurationValue.FindStringSubmatch(word)
		if match == nil {
			return "", false
		}
		values = append(values, match[1]+": "+strings.ToLower(match[2]))
	}
	return "{" + strings.Join(values, ", ") + "}", true
}

// editAutotune returns the manifest with a configuration.
func editAutotune(file string, text []byte, words string) ([]byte, error) {
	values, ok := writtenConfiguration(words)
	if !ok {
		return nil, fmt.Errorf("a manifest cannot name the configuration %s", words)
	}
	return replaceKey(file, text, Autotune, []string{"autotune: " + values + "\n"})
}

// offered builds the incumbent. The build tells which configurations the kernel offers, and which of them the
// manifest chooses. If the manifest says all, there is nothing to search, because the runner picks.
func (r *runner) offered(ctx context.Context, bench *arm.Bench) (offered, chosen []string, err error) {
	m := r.job.Of(*r.job.Baseline)
	if m.Autotune == nil || m.TriesAll() {
		return nil, nil, nil
	}
	a, err := bench.Open(ctx, *r.job.Baseline, r.scratch+"/offered", muted{})
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	if refusal, err := a.Build(ctx); err != nil {
		return nil, nil, err
	} else if refusal != nil {
		return nil, nil, fmt.Errorf("building the incumbent %s: %s", r.job.Baseline.Variant, refusal)
	}
	if t := a.Candidate().Tuning; t != nil {
		return t.Offered, t.Chosen, nil
	}
	return nil, nil, nil
}

// configured returns the manifest of a candidate with its configuration.
func configured(text string, words string) (*manifest.Manifest, string, error) {
	edited, err := editAutotune(manifest.FileName, []byte(text), words)
	if err != nil {
		return nil, "", err
	}
	m, err := manifest.Parse(manifest.FileName, edited)
	return m, string(edited), err
}
