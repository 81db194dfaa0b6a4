// Package openapi checks requests, answers and webhooks in tests against the API description and
// the webhook schemas that GitHub publishes. Description holds the REST API: its operations, their
// parameters and their answers. Schemas holds the JSON schemas of webhooks. It implements only the
// part of the schema language that GitHub's description uses, and it reads the files from the
// user's cache. Use it in tests only.
package openapi

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const version = "23.0.2" // as in testdata/fetch-openapi.sh

// A Description is GitHub's published API description.
type Description struct {
	paths, webhooks *section
	components      map[string]*section // by kind
}

// Load reads the description from the cache.
func Load(t testing.TB) *Description {
	t.Helper()
	d, err := read()
	needs(t, err, "GitHub's API description is not here; run bot/github/embedded/testdata/fetch-openapi.sh")
	return d
}

// needs ends a test whose input is missing or unreadable. If the cache lacks the file, the test is
// skipped with the remedy as its message. In CI it fails instead, because tests must not skip
// there.
func needs(t testing.TB, err error, remedy string) {
	t.Helper()
	switch {
	case errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") != "true":
		t.Skip(remedy)
	case errors.Is(err, fs.ErrNotExist):
		t.Fatal(remedy)
	case err != nil:
		t.Fatal(err)
	}
}

// read reads the description once for all tests of a package.
var read = sync.OnceValues(func() (*Description, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(cache, "kernelgate", "octokit-openapi-"+version, "api.github.com.json"))
	if err != nil {
		return nil, err
	}
	return newDescription(raw)
})

func newDescription(raw []byte) (*Description, error) {
	top, err := members(raw)
	if err != nil {
		return nil, err
	}
	kinds, err := members(top["components"])
	if err != nil {
		return nil, err
	}
	d := &Description{components: map[string]*section{}}
	for kind, raw := range kinds {
		if d.components[kind], err = newSection(raw); err != nil {
			return nil, err
		}
	}
	if d.paths, err = newSection(top["paths"]); err != nil {
		return nil, err
	}
	d.webhooks, err = newSection(top["x-webhooks"])
	return d, err
}

// An Operation is one method of one path.
type Operation struct {
	Path string // such as /repos/{owner}/{repo}

	d    *Description
	spec map[string]any
}

// Operation returns the description's operation for a request, or nil if GitHub has none.
func (d *Description) Operation(method, path string) *Operation {
	got := strings.Split(strings.Trim(path, "/"), "/")
	best, bestLiteral := "", -1
	for template := range d.paths.raw {
		want := strings.Split(strings.Trim(template, "/"), "/")
		if len(want) != len(got) {
			continue
		}
		literal := 0
		for i, w := range want {
			if strings.HasPrefix(w, "{") {
				continue
			}
			if w != got[i] {
				literal = -1
				break
			}
			literal++
		}
		if literal > bestLiteral && at(d.paths.at(template), strings.ToLower(method)) != nil {
			best, bestLiteral = template, literal
		}
	}
	if best == "" {
		return nil
	}
	spec, _ := at(d.paths.at(best), strings.ToLower(method)).(map[string]any)
	return &Operation{Path: best, d: d, spec: spec}
}

// Answer compares an answer with the description. known is false if the description has no answer
// with this status. compared is true if the description has a schema for the answer's body.
func (o *Operation) Answer(status string, body []byte) (wrong []string, known, compared bool) {
	response := o.d.resolve(at(o.spec, "responses", status))
	if response == nil {
		return nil, false, false
	}
	schema := at(response, "content", "application/json", "schema")
	if schema == nil {
		return nil, true, false
	}
	return o.d.compare(schema, body), true, true
}

// Request compares a request's query and body with the description. A field that the description
// does not know is an error, because GitHub would ignore it.
func (o *Operation) Request(query map[string][]string, body []byte) []string {
	known := map[string]bool{}
	for _, p := range list(o.spec["parameters"]) {
		if p := o.d.resolve(p); p["in"] == "query" {
			known[p["name"].(string)] = true
		}
	}
	var wrong []string
	for name := range query {
		if !known[name] {
			wrong = append(wrong, "the query has "+name)
		}
	}
	schema := at(o.d.resolve(o.spec["requestBody"]), "content", "application/json", "schema")
	switch {
	case schema == nil && len(body) > 0:
		wrong = append(wrong, "the request has a body")
	case schema != nil && len(body) > 0:
		wrong = append(wrong, o.d.compare(schema, body)...)
		var value any
		_ = json.Unmarshal(body, &value) // compare has already reported a body that does not parse
		wrong = append(wrong, o.d.strangers(schema, value, "")...)
	case schema != nil && at(o.d.resolve(o.spec["requestBody"]), "required") == true:
		wrong = append(wrong, "the request has no body")
	}
	slices.Sort(wrong)
	return wrong
}

// Webhook compares a webhook's payload with the description, by a name such as "check-run-created".
// known is false if GitHub sends no webhook with that name.
func (d *Description) Webhook(name string, payload []byte) (wrong []string, known bool) {
	schema := at(d.webhooks.at(name), "post", "requestBody", "content", "application/json", "schema")
	if schema == nil {
		return nil, false
	}
	return d.compare(schema, payload), true
}

func (d *Description) compare(schema any, raw []byte) []string {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return []string{err.Error()}
	}
	wrong := d.check(schema, value, "")
	slices.Sort(wrong)
	return slices.Compact(wrong)
}
