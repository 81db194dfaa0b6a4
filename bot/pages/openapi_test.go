package pages_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kernelgate/kernelgate/bot/pages"
)

// TestDescriptionIsComplete compares the description of the API with the server in both directions:
// every path that it names answers as it says, and every page and address is in it.
func TestDescriptionIsComplete(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(pages.Everybody{}).URL
	_, text := w.get(site + "/api/v1/openapi.json")
	var api struct {
		OpenAPI string
		Paths   map[string]struct {
			Get struct {
				OperationID string
				Responses   map[string]struct {
					Content map[string]struct{ Schema json.RawMessage }
				}
			}
		}
	}
	w.no(json.Unmarshal([]byte(text), &api))
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	w.no(err)
	compiler := jsonschema.NewCompiler()
	w.no(compiler.AddResource("https://gate.example/openapi.json", doc))

	fill := strings.NewReplacer("{job}", jobs["first"], "{change}", "pr-1-7", "{owner}", "org", "{repo}", "kernels", "{kernel}", "kernels/sdpa")
	query := map[string]string{"/api/v1/search": "?q=sdpa", "/api/v1/compare": "?a=" + jobs["stage1"] + "&b=" + jobs["stage2"], "/api/v1/policy": "?change=pr-1-7"}
	operations := map[string]bool{}
	for path, of := range api.Paths {
		if operations[of.Get.OperationID] || of.Get.OperationID == "" {
			t.Errorf("%s: the operation %q has no name, or one that another has", path, of.Get.OperationID)
		}
		operations[of.Get.OperationID] = true
		if strings.HasSuffix(path, "live") || strings.Contains(path, "/searches") {
			continue // streams end with the server, and other tests ask for searches
		}
		answer, text := w.get(site + fill.Replace(path) + query[path])
		media, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
		content, ok := of.Get.Responses["200"].Content[media]
		if answer.StatusCode != http.StatusOK || !ok {
			t.Errorf("%s answers %s with %q, which is not described", path, answer.Status, media)
			continue
		}
		if media != "application/json" {
			continue
		}
		schema, err := compiler.Compile("https://gate.example/openapi.json#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/get/responses/200/content/application~1json/schema")
		w.no(err)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		w.no(err)
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s (%s): %.1500v", path, content.Schema, err)
		}
	}

	described := func(address string) bool {
		path, _, _ := strings.Cut(address, "?")
		for pattern := range api.Paths {
			parts := regexp.MustCompile(`\\\{kernel\\\}`).ReplaceAllString(regexp.QuoteMeta(pattern), ".+")
			parts = regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(parts, "[^/]+")
			if regexp.MustCompile("^" + parts + "$").MatchString(path) {
				return true
			}
		}
		return false
	}
	server := pages.Server{}
	for _, route := range server.Routes() {
		path := "/api/v1" + strings.TrimSuffix(strings.TrimSuffix(route.Pattern, "{$}"), "/")
		if !described(strings.ReplaceAll(path, "...}", "}")) {
			t.Errorf("the page %s has no description for programs", route.Pattern)
		}
	}
	for _, address := range addresses(jobs) {
		isPage := !strings.HasPrefix(address, "/api/") && !strings.Contains(address, ".json") && !strings.Contains(address, ".svg")
		if !isPage && !described(address) {
			t.Errorf("%s is not described", address)
		}
	}
}
