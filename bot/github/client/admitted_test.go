package client

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAdmitted checks that the client records an IP allow list's refusal by installation or, with a
// token, by account, and drops the record after the next success.
func TestAdmitted(t *testing.T) {
	const no = `{"message": "the ` + "`olga`" + ` organization has an IP allow list enabled"}`
	at := func(who, path string, does step) func(*bench) {
		return func(b *bench) {
			b.identity = who
			rq, _ := request(t, t.Context(), http.MethodGet, op{})
			rq.URL.Path = path
			if _, err := (&once{env: b.env, next: wires(does)}).RoundTrip(rq); err != nil {
				t.Error(err)
			}
		}
	}
	token, installation := "/app/installations/5/access_tokens", "/repos/olga/kernels/pulls"
	for name, test := range map[string]struct {
		steps []func(*bench)
		want  string
	}{
		"nobody":                 {nil, ""},
		"an installation":        {[]func(*bench){at("installation 5", installation, answer(403, no))}, "installation 5"},
		"its token":              {[]func(*bench){at("app 1", token, answer(403, no))}, "installation 5"},
		"another refusal":        {[]func(*bench){at("installation 5", installation, answer(403, `{"message": "archived"}`))}, ""},
		"let through":            {[]func(*bench){at("app 1", token, answer(403, no)), at("installation 5", installation, status(200))}, ""},
		"let through by a cache": {[]func(*bench){at("app 1", token, answer(403, no)), at("installation 5", installation, status(304))}, ""},
		"a fault says nothing":   {[]func(*bench){at("app 1", token, answer(403, no)), at("installation 5", installation, status(500))}, "installation 5"},
		"another is let through": {[]func(*bench){at("app 1", token, answer(403, no)), at("installation 6", installation, status(200))}, "installation 5"},
		"the App is let through": {[]func(*bench){at("app 1", token, answer(403, no)), at("app 1", "/app", status(200))}, "installation 5"},
		"a token":                {[]func(*bench){at("token", "/repos/Olga/kernels", answer(403, no)), at("token", "/repos/otto/kernels", status(200))}, "token in olga"},
	} {
		b := newBench()
		for _, do := range test.steps {
			do(b)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(b.stats.read().Shut)), ", "); got != test.want {
			t.Errorf("%s: %q is shut, want %q", name, got, test.want)
		}
	}
}

// wires is a transport that performs one step.
type wires step

func (w wires) RoundTrip(rq *http.Request) (*http.Response, error) { return w(rq) }
