package webhook_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// examples are GitHub's own payloads, of github.com and of five releases of
// GitHub Enterprise Server.
type examples []struct {
	Name     string            `json:"name"`
	Examples []json.RawMessage `json:"examples"`
}

// sources are the files that fetch-examples.sh has fetched, by what sent them.
func sources(t testing.TB) map[string]string {
	t.Helper()
	out, err := exec.Command("testdata/fetch-examples.sh", "--check").Output()
	if err != nil {
		const missing = "no example payloads: run bot/github/webhook/testdata/fetch-examples.sh"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	folder, _, _ := strings.Cut(string(out), "\n")
	files, err := filepath.Glob(filepath.Join(folder, "*", "index.json"))
	if err != nil || len(files) != 6 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	all := map[string]string{}
	for _, file := range files {
		all[filepath.Base(filepath.Dir(file))] = file
	}
	return all
}

func readExamples(t testing.TB, file string) examples {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list examples
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return list
}

func TestDecodeExamples(t *testing.T) {
	seen := map[string]int{}
	for source, file := range sources(t) {
		for _, event := range readExamples(t, file) {
			for i, body := range event.Examples {
				at := fmt.Sprintf("%s %s[%d]", source, event.Name, i)
				got, err := webhook.Decode(event.Name, body)
				if err != nil {
					t.Errorf("%s: %v", at, err)
					continue
				}
				seen[fmt.Sprintf("%T", got)]++
				checkExample(t, at, body, got)
				checkCut(t, at, event.Name, body, got)
			}
		}
	}
	// Its comments are all on issues.
	for _, kind := range []string{"PullRequest", "MergeGroup", "CheckRun", "CheckSuite", "Push", "Review", "ReviewComment", "RepositoryChange",
		"Installation", "InstallationRepositories", "Ping", "Ignored"} {
		if seen["webhook."+kind] == 0 {
			t.Errorf("no example is a %s", kind)
		}
	}
	t.Log(seen)
}

// checkExample compares an event with its payload read another way.
func checkExample(t *testing.T, at string, body []byte, got webhook.Event) {
	t.Helper()
	if _, ignored := got.(webhook.Ignored); ignored {
		return
	}
	var tree map[string]any
	if err := json.Unmarshal(body, &tree); err != nil {
		t.Fatal(err)
	}
	same := func(value any, path ...string) {
		t.Helper()
		var node any = tree
		for _, key := range path {
			object, _ := node.(map[string]any)
			node = object[key]
		}
		if node == nil {
			node = ""
		}
		if fmt.Sprint(value) != fmt.Sprint(node) {
			t.Errorf("%s: %s is %v, and %v was read", at, strings.Join(path, "."), node, value)
		}
	}
	inRepository := func(o webhook.Origin) {
		t.Helper()
		same(float64(o.Repository.ID), "repository", "id")
		same(o.Repository.Name(), "repository", "name")
		same(o.Repository.DefaultBranch, "repository", "default_branch")
		same(o.Sender.Login, "sender", "login")
	}
	switch e := got.(type) {
	case webhook.PullRequest:
		inRepository(e.Origin)
		same(e.Number, "pull_request", "number")
		same(e.HeadSHA, "pull_request", "head", "sha")
		same(e.HeadRepo.FullName, "pull_request", "head", "repo", "full_name")
		same(e.BaseRef, "pull_request", "base", "ref")
		same(e.Draft, "pull_request", "draft")
		same(e.Author.Login, "pull_request", "user", "login")
	case webhook.Review:
		inRepository(e.Origin)
		same(e.Number, "pull_request", "number")
		same(float64(e.ID), "review", "id")
		same(e.Body, "review", "body")
		same(e.Author.Login, "review", "user", "login")
		same(e.State, "review", "state")
		same(e.HeadSHA, "review", "commit_id")
	case webhook.ReviewComment:
		inRepository(e.Origin)
		same(e.Number, "pull_request", "number")
		same(float64(e.ID), "comment", "id")
		same(e.Body, "comment", "body")
		same(e.Author.Login, "comment", "user", "login")
	case webhook.RepositoryChange:
		inRepository(e.Origin)
		same(e.Action, "action")
		if moved := e.Action == "renamed" || e.Action == "transferred"; moved != (e.FullNameWas != "") {
			t.Errorf("%s: %s after %s was %q before", at, e.Repository.FullName, e.Action, e.FullNameWas)
		}
	case webhook.MergeGroup:
		inRepository(e.Origin)
		same(e.HeadSHA, "merge_group", "head_sha")
		same(e.HeadRef, "merge_group", "head_ref")
		same(e.BaseSHA, "merge_group", "base_sha")
	case webhook.CheckRun:
		inRepository(e.Origin)
		same(e.HeadSHA, "check_run", "head_sha")
		same(float64(e.AppID), "check_run", "app", "id")
		same(e.Button, "requested_action", "identifier")
	case webhook.CheckSuite:
		inRepository(e.Origin)
		same(e.HeadSHA, "check_suite", "head_sha")
	case webhook.Push:
		inRepository(e.Origin)
		same("refs/heads/"+e.Branch, "ref")
		same(e.After, "after")
	case webhook.Installation:
		same(e.Action, "action")
		same(float64(e.Installation), "installation", "id")
		same(e.Account.Login, "installation", "account", "login")
	case webhook.InstallationRepositories:
		if len(e.Added)+len(e.Removed) == 0 {
			t.Errorf("%s: no repository was read", at)
		}
	case webhook.Ping:
		same(float64(e.HookID), "hook_id")
	}
}

// checkCut reads a payload that breaks off: that is an error for every event
// that is read at all.
func checkCut(t *testing.T, at, event string, body []byte, whole webhook.Event) {
	t.Helper()
	ignored, _ := whole.(webhook.Ignored)
	if strings.HasPrefix(ignored.Reason, "event ") {
		return
	}
	for _, part := range []int{1, len(body) / 3, len(body) - 1} {
		if got, err := webhook.Decode(event, body[:part]); err == nil {
			t.Errorf("%s: the first %d bytes read %#v", at, part, got)
		}
	}
}
