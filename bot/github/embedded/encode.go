package embedded

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-github/v60/github"
)

// encode writes go-github's structs as GitHub writes them. The client's structs
// leave out what is empty; GitHub sends null, and a parser that cannot take a null
// must not learn that from production.
func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(tree(reflect.ValueOf(v)))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return raw, nil
}

// nullable lists the fields that GitHub sends although they are empty. Where it
// refers to a thing in few words, it leaves them out.
func nullable(v reflect.Value) string {
	t := v.Type()
	mark := map[reflect.Type]string{reflect.TypeFor[github.PullRequest](): "State", reflect.TypeFor[github.Repository](): "Owner",
		reflect.TypeFor[github.Installation](): "Account", reflect.TypeFor[github.HeadCommit](): "Distinct", reflect.TypeFor[github.CheckSuite](): "App"}[t]
	if mark != "" && v.FieldByName(mark).IsZero() {
		return ""
	}
	switch t {
	case reflect.TypeFor[github.PullRequest]():
		const listed = "body closed_at merged_at merge_commit_sha assignee assignees milestone labels requested_reviewers requested_teams active_lock_reason auto_merge"
		if v.FieldByName("Merged").IsZero() {
			return listed
		}
		return listed + " mergeable merged_by rebaseable"
	case reflect.TypeFor[github.CheckRun]():
		return "conclusion started_at completed_at external_id details_url html_url pull_requests check_suite app"
	case reflect.TypeFor[github.CheckRunOutput]():
		return "title summary text"
	case reflect.TypeFor[github.CheckSuite]():
		return "head_branch before after conclusion status pull_requests created_at updated_at"
	case reflect.TypeFor[github.Repository]():
		return "description homepage language license mirror_url pushed_at created_at updated_at"
	case reflect.TypeFor[github.Issue]():
		return "body closed_at assignee assignees milestone labels active_lock_reason state_reason"
	case reflect.TypeFor[github.Label]():
		return "description"
	case reflect.TypeFor[github.RepoStatus]():
		return "target_url description avatar_url creator"
	case reflect.TypeFor[github.HookDelivery]():
		return "action installation_id repository_id"
	case reflect.TypeFor[github.Installation]():
		return "single_file_name suspended_at suspended_by"
	case reflect.TypeFor[github.App]():
		return "description"
	case reflect.TypeFor[github.PullRequestReview]():
		return "body"
	case reflect.TypeFor[github.PullRequestComment]():
		return "pull_request_review_id position original_position start_line line original_line original_start_line side start_side"
	case reflect.TypeFor[github.Reaction]():
		return "user"
	case reflect.TypeFor[github.PushEvent]():
		return "base_ref head_commit commits"
	case reflect.TypeFor[github.HeadCommit]():
		return "added removed modified"
	}
	return ""
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
	always := strings.Fields(nullable(v))
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
		empty := strings.Contains(rest, "omitempty") && v.Field(i).IsZero()
		if !empty {
			out[name] = tree(v.Field(i))
			continue
		}
		for _, a := range always {
			if a != name {
				continue
			}
			out[name] = nil
			if f.Type.Kind() == reflect.Slice {
				out[name] = []any{}
			}
		}
	}
}

// amend adds what GitHub sends and go-github's structs have no field for.
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
