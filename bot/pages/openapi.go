package pages

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/gates/schema"
)

// An endpoint is an address for programs. The handler and its description are one entry, so that
// neither can be there without the other.
type endpoint struct {
	pattern string
	id      string // name of the operation
	summary string
	query   []string
	answer  any    // its type is the JSON of the answer; nil if the answer is not JSON
	media   string // of an answer that is not JSON
	handle  http.HandlerFunc
}

// endpoints lists the addresses for programs.
func (s *Server) endpoints() []endpoint {
	const stream, picture, bitmap = "text/event-stream", "image/svg+xml", "image/png"
	return []endpoint{
		{"/api/v1", "overview", "Overview: kernels, runs, queue and runners", nil, HomePage{}, "", s.json(s.home)},
		{"/api/v1/runs/{job}", "run", "One run, with everything that its page shows", nil, RunPage{}, "", s.json(s.run)},
		{"/api/v1/runs/{job}/result", "result", "The result of one run, in the form of check --json, webhooks and MCP", nil, result.Result{}, "", s.json(s.result)},
		{"/api/v1/changes/{change}", "change", "One pull request, merge group or push", nil, ChangePage{}, "", s.json(s.change)},
		{"/api/v1/kernels/{owner}/{repo}", "repository", "A repository's kernels and runs", []string{"before"}, RepositoryPage{}, "", s.json(s.repository)},
		{"/api/v1/kernels/{owner}/{repo}/{kernel...}", "kernel", "A kernel's history", []string{"before", "from", "to"}, KernelPage{}, "", s.json(s.kernel)},
		{"/api/v1/search", "search", "Kernels, changes and commits by a text", []string{"q"}, SearchPage{}, "", s.json(s.search)},
		{"/api/v1/compare", "compare", "Two runs or commits side by side", []string{"a", "b", "kernel", "only", "shape"}, ComparePage{}, "", s.json(s.compare)},
		{"/api/v1/policy", "policy", "Which rule applies to a change", []string{"change", "kernel"}, PolicyPage{}, "", s.json(s.policy)},
		{"/api/v1/searches", "searches", "Searches of kernelgate tune", nil, TuningsPage{}, "", s.json(s.tunings)},
		{"/api/v1/searches/{name}", "searchByName", "One search: its elite, candidates and failures", nil, TuningPage{}, "", s.json(s.tuning)},
		{"/runs/{job}/evidence.json", "evidence", "The evidence of one run", nil, gates.Evidence{}, "", s.download("evidence")},
		{"/runs/{job}/verdict.json", "verdict", "The verdict of one run in full", nil, gates.Verdict{}, "", s.download("verdict")},
		{"/runs/{job}/intervals.svg", "intervals", "The intervals of one run as a picture", nil, nil, picture, s.alone(picture, intervals)},
		{"/runs/{job}/intervals.png", "intervalsPNG", "The same as a bitmap", nil, nil, bitmap, s.alone(bitmap, intervalsPNG)},
		{"/runs/{job}/preview.png", "preview", "The verdict of one run as a preview of its page", nil, nil, bitmap, s.alone(bitmap, previewPNG)},
		{"/runs/{job}/live", "runLive", "Progress of one run", nil, nil, stream, s.watchRun},
		{"/live", "live", "Progress of all runs", nil, nil, stream, s.watchHome},
		{"/searches/{name}/live", "searchLive", "Progress of one search", nil, nil, stream, s.watchTuning},
		{"/badge/{owner}/{repo}/{kernel...}", "badge", "A kernel's badge", nil, nil, picture, s.badge},
		{"/feed.atom", "feed", "The last verdicts as a feed", nil, nil, "application/atom+xml", s.feed},
	}
}

// openapi serves a description of the endpoints, derived from the types of their answers.
func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	types := schema.Writer{Refs: "#/components/schemas/", Qualified: true, Enums: result.Enums()}
	paths := map[string]any{}
	for _, e := range s.endpoints() {
		paths[e.path()] = map[string]any{"get": e.describe(&types)}
	}
	paths["/api/v1/openapi.json"] = map[string]any{"get": map[string]any{
		"operationId": "description", "summary": "This description", "responses": map[string]any{
			"200": jsonAnswer("The description", map[string]any{"type": "object"}),
		},
	}}
	types.Of(reflect.TypeFor[refusal]())
	writeJSON(w, r, http.StatusOK, map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "kernelgate", "version": "1", "license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []any{map[string]any{"url": s.serverURL()}}, "paths": paths,
		"security":   []any{map[string]any{"token": []any{}}, map[string]any{}},
		"components": map[string]any{"schemas": types.Definitions, "securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}},
	})
}

// serverURL is the address that the paths of the description follow.
func (s *Server) serverURL() string {
	if s.URL == "" {
		return "/"
	}
	return s.URL
}

// path is the address as the description has it. A kernel's badge ends with .svg.
func (e endpoint) path() string {
	if before, ok := strings.CutSuffix(e.pattern, "...}"); ok && e.media != "" {
		return before + "}.svg"
	}
	return strings.ReplaceAll(e.pattern, "...}", "}")
}

func (e endpoint) describe(types *schema.Writer) map[string]any {
	parameters := []any{}
	add := func(name, in string) {
		parameters = append(parameters, map[string]any{"name": name, "in": in, "required": in == "path", "schema": map[string]any{"type": "string"}})
	}
	for part := range strings.SplitSeq(e.pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			add(strings.TrimRight(name, ".}"), "path")
		}
	}
	for _, name := range e.query {
		add(name, "query")
	}
	found := map[string]any{"description": e.summary, "content": map[string]any{e.media: map[string]any{"schema": map[string]any{"type": "string"}}}}
	if e.answer != nil {
		found = jsonAnswer(e.summary, types.Of(reflect.TypeOf(e.answer)))
	}
	return map[string]any{
		"operationId": e.id, "summary": e.summary, "parameters": parameters,
		"responses": map[string]any{"200": found, "404": e.absent(types)},
	}
}

func (e endpoint) absent(types *schema.Writer) map[string]any {
	const text = "It does not exist, or you may not read it."
	if !strings.HasPrefix(e.pattern, "/api/") {
		return map[string]any{"description": text}
	}
	return jsonAnswer(text, types.Of(reflect.TypeFor[refusal]()))
}

func jsonAnswer(description string, schema map[string]any) map[string]any {
	return map[string]any{"description": description, "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
}

// A refusal is the JSON of a request that fails.
type refusal struct {
	Error string `json:"error"`
}
