package mirror_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/planner/mirror"
)

// renewed is an origin whose first token has ended early.
type renewed struct {
	origin
	tokens  []string
	refused []string
}

func (o *renewed) GitCredential(context.Context, string) (string, string, error) {
	return "x-access-token", o.tokens[0], nil
}

func (o *renewed) GitRefused(_, token string) {
	o.refused = append(o.refused, token)
	if len(o.tokens) > 1 {
		o.tokens = o.tokens[1:]
	}
}

// A refused credential is replaced once, for repositories and for submodules; git's question for a user's name is not shown.
func TestRefusedCredential(t *testing.T) {
	_, repo, o := world(t)
	for name, c := range map[string]struct {
		tokens  []string
		refused int
		fails   bool
	}{
		"a token that ended early":       {[]string{"ghs_ended", o.token}, 1, false},
		"two of them":                    {[]string{"ghs_ended", "ghs_too", o.token}, 1, true},
		"one that cannot be replaced":    {[]string{"ghs_ended"}, 1, true},
		"a token that works":             {[]string{o.token}, 0, false},
		"an origin without credentials ": {[]string{""}, 0, true},
	} {
		for what, get := range map[string]func(*mirror.Store) error{
			"fetch": func(s *mirror.Store) error { _, err := s.Fetch(t.Context(), "olga/kernels"); return err },
			"submodule": func(s *mirror.Store) error {
				_, err := s.Submodule(t.Context(), "olga/other", "../kernels", repo.Head("main"))
				return err
			},
		} {
			from := &renewed{origin: o, tokens: c.tokens}
			err := get(&mirror.Store{Dir: t.TempDir(), Origin: from})
			if (err != nil) != c.fails || len(from.refused) != c.refused {
				t.Errorf("%s, %s: %v, refused %q", name, what, err, from.refused)
			}
			if err != nil && (strings.Contains(err.Error(), "Username") || strings.Contains(err.Error(), "ghs_")) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}
