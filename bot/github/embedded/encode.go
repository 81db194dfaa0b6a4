package embedded

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

// encode writes go-github's structs as GitHub writes them. Those structs omit empty fields, but
// GitHub sends null for many of them. A parser that cannot read a null must fail in tests, not in
// production.
func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(tree(reflect.ValueOf(v)))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return raw, nil
}

// nullable names, by type, the fields that GitHub sends even if they are empty. GitHub leaves them
// out of the short form of an object, which is the form without the field named by short.
var nullable = map[reflect.Type]struct{ fields, short string }{
	reflect.TypeFor[github.App]():                {"description", ""},
	reflect.TypeFor[github.CheckRun]():           {"conclusion started_at completed_at external_id details_url html_url pull_requests check_suite app", ""},
	reflect.TypeFor[github.CheckRunOutput]():     {"title summary text", ""},
	reflect.TypeFor[github.CheckSuite]():         {"head_branch before after conclusion status pull_requests created_at updated_at", "App"},
	reflect.TypeFor[github.HeadCommit]():         {"added removed modified", "Distinct"},
	reflect.TypeFor[github.HookDelivery]():       {"action installation_id repository_id", ""},
	reflect.TypeFor[github.Installation]():       {"single_file_name suspended_at suspended_by", "Account"},
	reflect.TypeFor[github.Issue]():              {"body closed_at assignee assignees milestone labels active_lock_reason state_reason", ""},
	reflect.TypeFor[github.Label]():              {"description", ""},
	reflect.TypeFor[github.PullRequest]():        {"body closed_at merged_at merge_commit_sha assignee assignees milestone labels requested_reviewers requested_teams active_lock_reason auto_merge", "State"},
	reflect.TypeFor[github.PullRequestComment](): {"pull_request_review_id position original_position start_line line original_line original_start_line side start_side", ""},
	reflect.TypeFor[github.PullRequestReview]():  {"body", ""},
	reflect.TypeFor[github.PushEvent]():          {"base_ref head_commit commits", ""},
	reflect.TypeFor[github.Reaction]():           {"user", ""},
	reflect.TypeFor[github.Repository]():         {"description homepage language license mirror_url pushed_at created_at updated_at", "Owner"},
	reflect.TypeFor[github.RepoStatus]():         {"target_url description avatar_url creator", ""},
}

// always returns the fields of v that GitHub sends even if they are empty.
func always(v reflect.Value) []string {
	known := nullable[v.Type()]
	if known.short != "" && v.FieldByName(known.short).IsZero() {
		return nil
	}
	if v.Type() == reflect.TypeFor[github.PullRequest]() && !v.FieldByName("Merged").IsZero() { // not an entry of a list
		known.fields += " mergeable merged_by rebaseable"
	}
	return strings.Fields(known.fields)
}

func tree(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		return tree(v.Elem())
	}
	if _, ok := v.Interface().(json.Marshaler); ok {
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Struct:
		out := map[string]any{}
		fields(v, out)
		amend(v.Type(), out)
		return out
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = tree(v.Index(i))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, key := range v.MapKeys() {
			out[key.String()] = tree(v.MapIndex(key))
		}
		return out
	}
	return v.Interface()
}

func fields(v reflect.Value, out map[string]any) {
	t := v.Type()
	sent := always(v)
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fields(reflect.Indirect(v.Field(i)), out)
			continue
		case !f.IsExported() || name == "-" || name == "":
			continue
		}
		switch empty := strings.Contains(rest, "omitempty") && v.Field(i).IsZero(); {
		case !empty:
			out[name] = tree(v.Field(i))
		case slices.Contains(sent, name) && f.Type.Kind() == reflect.Slice:
			out[name] = []any{}
		case slices.Contains(sent, name):
			out[name] = nil
		}
	}
}

// with returns an object's fields together with fields that go-github's struct lacks or omits.
func with(thing any, more map[string]any) map[string]any {
	out := tree(reflect.ValueOf(thing)).(map[string]any)
	maps.Copy(out, more)
	return out
}

// amend adds the fields that GitHub sends and that go-github's structs lack.
func amend(t reflect.Type, out map[string]any) {
	switch t {
	case reflect.TypeFor[github.Repository]():
		if n, ok := out["forks_count"]; ok {
			out["forks"] = n
		}
	case reflect.TypeFor[github.IssueComment]():
		out["performed_via_github_app"] = nil
	}
}
