package client

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/ident"
)

func TestGraphQLAddress(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                               "/graphql",
		"https://octo.ghe.com":           "/graphql",
		"https://git.example.com":        "/api/graphql",
		"https://git.example.com/api/v3": "/api/graphql",
	} {
		h, err := NewToken("t", Options{BaseURL: base})
		if err != nil {
			t.Fatal(err)
		}
		if got := h.graphQLPath(); got != want {
			t.Errorf("%q: %s, want %s", base, got, want)
		}
	}
}

// FuzzQueue checks that an answer that is accepted has only entries that can be used, and that no
// entry of the answer is missing.
func FuzzQueue(f *testing.F) {
	sha := strings.Repeat("a", 40)
	entry := `{"position":1,"state":"QUEUED","baseCommit":{"oid":"` + sha + `"},"headCommit":null,"pullRequest":{"number":7,"headRefOid":"` + sha + `"}}`
	for _, seed := range []string{
		`{"data":{"repository":{"mergeQueue":{"entries":{"totalCount":1,"nodes":[` + entry + `],"pageInfo":{"hasNextPage":false,"endCursor":null}}}}}}`,
		`{"data":{"repository":{"mergeQueue":{"entries":{"totalCount":2,"nodes":[` + entry + `,null],"pageInfo":{"hasNextPage":true,"endCursor":"x"}}}}}}`,
		`{"data":{"repository":{"mergeQueue":null}}}`,
		`{"data":{"repository":null},"errors":[{"type":"NOT_FOUND","path":["repository"],"message":"m"}]}`,
		`{"errors":[{"extensions":{"code":"undefinedField"},"message":"m"}]}`, `{}`, `null`, `[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		page, err := parseQueue(raw)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		var plain struct {
			Data struct {
				Repository struct {
					MergeQueue struct {
						Entries struct{ Nodes []any }
					}
				}
			}
		}
		if json.Unmarshal(raw, &plain) == nil && len(page.Nodes) != len(plain.Data.Repository.MergeQueue.Entries.Nodes) {
			t.Errorf("%d entries of %d", len(page.Nodes), len(plain.Data.Repository.MergeQueue.Entries.Nodes))
		}
		list, err := entries(slices.Clone(page.Nodes))
		if err != nil {
			return
		}
		for _, e := range list {
			if e.Number <= 0 || !ident.IsCommit(e.PullHead) || e.Head != "" && !ident.IsCommit(e.Head) || e.Base != "" && !ident.IsCommit(e.Base) {
				t.Errorf("entry %+v", e)
			}
		}
	})
}
