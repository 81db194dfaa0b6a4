package embedded

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// A gqlError is one entry in the list of errors of a GraphQL answer, whose status is 200.
type gqlError struct {
	Type       string         `json:"type,omitempty"` // of an error during the execution
	Path       []any          `json:"path,omitempty"`
	Extensions map[string]any `json:"extensions,omitempty"` // of an error of the query
	Locations  []gqlPlace     `json:"locations,omitempty"`
	Message    string         `json:"message"`
}

// A gqlPlace is a position in the text of a query.
type gqlPlace struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

func (e *gqlError) Error() string { return e.Message }

// A gqlField is a field of a type in the part of GitHub's schema that the hub serves.
type gqlField struct {
	of      string            // type of the value; empty for a scalar
	args    map[string]string // to their types
	resolve func(rq *request, on any, args map[string]any) (any, error)
}

// postGraphQL answers a query. It serves no mutations, fragments and directives.
func postGraphQL(rq *request) error {
	if rq.actor.anonymous() {
		return &apiError{Status: http.StatusUnauthorized, Message: "This endpoint requires you to be authenticated.",
			Doc: "https://docs.github.com/graphql/guides/forming-calls-with-graphql#authenticating-with-graphql"}
	}
	var asked struct {
		Query     *string        `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	if json.Unmarshal(rq.body, &asked) != nil {
		return &apiError{Status: http.StatusBadRequest, Message: "Problems parsing JSON", Doc: "https://docs.github.com/graphql"}
	}
	if asked.Query == nil {
		return rq.gqlErrors(&gqlError{Message: "A query attribute must be specified and must be a string."})
	}
	q, err := parseGraphQL(*asked.Query, asked.Variables)
	if err != nil {
		return rq.gqlErrors(err)
	}
	if wrong := q.validate(q.kind, []any{"query"}, q.fields); len(wrong) > 0 {
		return rq.gqlErrors(wrong...)
	}
	run := &gqlRun{rq: rq}
	out := map[string]any{"data": run.object(q.kind, nil, nil, q.fields)}
	if len(run.errs) > 0 {
		out["errors"] = run.errs
	}
	return rq.ok(out)
}

func (rq *request) gqlErrors(all ...*gqlError) error { return rq.ok(map[string]any{"errors": all}) }

// validate compares the fields of a query with the schema.
func (q *gqlQuery) validate(kind string, path []any, fields []*gqlSelection) (wrong []*gqlError) {
	complain := func(f *gqlSelection, code, message string, more map[string]any) {
		ext := map[string]any{"code": code, "typeName": kind, "fieldName": f.name}
		for name, v := range more {
			ext[name] = v
		}
		wrong = append(wrong, &gqlError{Path: append(slices.Clone(path), f.name), Extensions: ext, Locations: []gqlPlace{f.at}, Message: message})
	}
	for _, f := range fields {
		known, ok := gqlSchema[kind][f.name]
		if !ok {
			complain(f, "undefinedField", fmt.Sprintf("Field '%s' doesn't exist on type '%s'", f.name, kind), nil)
			continue
		}
		for name, v := range f.args {
			want, ok := known.args[name]
			switch {
			case !ok:
				complain(f, "argumentNotAccepted", fmt.Sprintf("Field '%s' doesn't accept argument '%s'", f.name, name), map[string]any{"argumentName": name})
			case !fits(v, want):
				complain(f, "argumentLiteralsIncompatible", fmt.Sprintf("Argument '%s' on Field '%s' has an invalid value (%v). Expected type '%s'.", name, f.name, v, want),
					map[string]any{"argumentName": name})
			}
		}
		for name, want := range known.args {
			if _, given := f.args[name]; !given && want[len(want)-1] == '!' {
				complain(f, "missingRequiredArguments", fmt.Sprintf("Field '%s' is missing required arguments: %s", f.name, name), nil)
			}
		}
		switch {
		case known.of != "" && len(f.fields) == 0:
			complain(f, "selectionMismatch", fmt.Sprintf("Field must have selections (field '%s' returns %s but has no selections. Did you mean '%[1]s { ... }'?)", f.name, known.of), nil)
		case known.of == "" && len(f.fields) > 0:
			complain(f, "selectionMismatch", fmt.Sprintf("Selections can't be made on scalars (field '%s' has selections)", f.name), nil)
		default:
			wrong = append(wrong, q.validate(known.of, append(slices.Clone(path), f.name), f.fields)...)
		}
	}
	return wrong
}

// fits reports whether a value has a type of the schema: Int, String! or the like.
func fits(v any, want string) bool {
	switch v.(type) {
	case nil:
		return want[len(want)-1] != '!'
	case string:
		return want == "String" || want == "String!"
	case int:
		return want == "Int"
	}
	return false
}

// A gqlRun is the execution of a valid query.
type gqlRun struct {
	rq   *request
	errs []*gqlError
}

func (run *gqlRun) object(kind string, on any, path []any, fields []*gqlSelection) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		known, at := gqlSchema[kind][f.name], append(slices.Clone(path), cmp.Or(f.alias, f.name))
		v, err := known.resolve(run.rq, on, f.args)
		if err != nil {
			e := asGQLError(err)
			e.Path, e.Locations = at, []gqlPlace{f.at}
			run.errs = append(run.errs, e)
			v = nil
		}
		switch v := v.(type) {
		case nil:
			out[cmp.Or(f.alias, f.name)] = nil
		case []any:
			list := make([]any, len(v))
			for i, one := range v {
				list[i] = run.object(known.of, one, append(slices.Clone(at), i), f.fields)
			}
			out[cmp.Or(f.alias, f.name)] = list
		default:
			if known.of != "" {
				out[cmp.Or(f.alias, f.name)] = run.object(known.of, v, at, f.fields)
			} else {
				out[cmp.Or(f.alias, f.name)] = v
			}
		}
	}
	return out
}

// asGQLError turns an error of the REST API into the one that GraphQL answers for it.
func asGQLError(err error) *gqlError {
	if own, ok := errors.AsType[*gqlError](err); ok {
		return own
	}
	switch api := asAPIError(err); api.Status {
	case http.StatusForbidden:
		return &gqlError{Type: "FORBIDDEN", Extensions: map[string]any{"saml_failure": false}, Message: api.Message}
	case http.StatusNotFound:
		return &gqlError{Type: "NOT_FOUND", Message: api.Message}
	default:
		return &gqlError{Message: "Something went wrong while executing your query. " + api.Message}
	}
}
