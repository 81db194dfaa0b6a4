package pages

import (
	"net/http"
	"reflect"
	"strings"
	"time"
)

// openapi serves a description of /api/v1, derived from the types of its answers.
func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	schemas := map[string]any{}
	paths := map[string]any{}
	for _, a := range []struct {
		path, summary string
		answer        any
		parameters    []string
	}{
		{"/api/v1", "Overview: kernels, runs, queue and runners", HomePage{}, nil},
		{"/api/v1/runs/{job}", "One run", RunPage{}, []string{"job"}},
		{"/api/v1/changes/{change}", "One pull request, merge group or push", ChangePage{}, []string{"change"}},
		{"/api/v1/kernels/{owner}/{repo}", "A repository's kernels and runs", RepositoryPage{}, []string{"owner", "repo", "?before"}},
		{"/api/v1/search", "Kernels, changes and commits by a text", SearchPage{}, []string{"?q"}},
		{"/api/v1/kernels/{owner}/{repo}/{kernel}", "A kernel's history", KernelPage{}, []string{"owner", "repo", "kernel", "?before"}},
		{"/api/v1/compare", "Two runs or commits side by side", ComparePage{}, []string{"?a", "?b", "?kernel", "?only", "?shape"}},
		{"/api/v1/searches", "Searches of kernelgate tune", TuningsPage{}, nil},
		{"/api/v1/searches/{name}", "One search: its elite, candidates and failures", TuningPage{}, []string{"name"}},
		{"/api/v1/policy", "Which rule applies to a change", PolicyPage{}, []string{"?change", "?kernel"}},
	} {
		parameters := []any{}
		for _, name := range a.parameters {
			in := "path"
			if strings.HasPrefix(name, "?") {
				in, name = "query", name[1:]
			}
			parameters = append(parameters, map[string]any{"name": name, "in": in, "required": in == "path", "schema": map[string]any{"type": "string"}})
		}
		paths[a.path] = map[string]any{"get": map[string]any{
			"summary": a.summary, "parameters": parameters,
			"responses": map[string]any{
				"200": map[string]any{"description": "it", "content": map[string]any{"application/json": map[string]any{"schema": schemaOf(reflect.TypeOf(a.answer), schemas)}}},
				"404": map[string]any{"description": "it does not exist, or you may not read it"},
			},
		}}
	}
	writeJSON(w, r, http.StatusOK, map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "kernelgate", "version": "1"}, "paths": paths,
		"components": map[string]any{"schemas": schemas, "securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}},
	})
}

// schemaOf converts a Go type to a JSON schema. Named structs go into the components.
func schemaOf(t reflect.Type, named map[string]any) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), named)
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), named)}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), named)}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return map[string]any{"type": "integer"}
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return map[string]any{"type": "number"}
	case t.Kind() != reflect.Struct:
		return map[string]any{}
	}
	words := strings.Split(t.PkgPath(), "/")
	name := words[len(words)-1] + "." + t.Name()
	if _, known := named[name]; !known {
		properties := map[string]any{}
		named[name] = map[string]any{"type": "object", "properties": properties} // set before its fields, which may refer to it
		addFields(t, properties, named)
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

func addFields(t reflect.Type, properties, named map[string]any) {
	for _, f := range reflect.VisibleFields(t) {
		if len(f.Index) > 1 || !f.IsExported() {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-":
		case f.Anonymous && tag == "":
			addFields(f.Type, properties, named)
		case tag == "":
			properties[f.Name] = schemaOf(f.Type, named)
		default:
			properties[tag] = schemaOf(f.Type, named)
		}
	}
}
