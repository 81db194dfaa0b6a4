package webhook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

var (
	a, b = strings.Repeat("a", 40), strings.Repeat("b", 40)

	ours   = webhook.Repository{ID: 7, FullName: "acme/kernels", DefaultBranch: "main"}
	anns   = webhook.Repository{ID: 8, FullName: "ann/kernels", DefaultBranch: "main"}
	ann    = webhook.User{Login: "ann"}
	origin = webhook.Origin{Repository: ours, Installation: 99, Sender: ann}
)

// payloads are the files in testdata and what is in them.
var payloads = map[string]webhook.Event{
	"pull_request.synchronize":  pullRequest(func(*webhook.PullRequest) {}),
	"pull_request.edited-base":  pullRequest(func(p *webhook.PullRequest) { p.Draft = true }),
	"pull_request.edited-title": pullRequest(func(*webhook.PullRequest) {}),
	"pull_request.edited-body":  webhook.Ignored{Reason: "neither base nor title was edited"},
	"pull_request.labeled-fork-gone": pullRequest(func(p *webhook.PullRequest) {
		p.HeadRepo, p.Author = webhook.Repository{}, webhook.User{}
	}),
	"pull_request.closed-merged": pullRequest(func(p *webhook.PullRequest) {
		p.Open, p.Merged, p.HeadRepo, p.Installation = false, true, ours, 0
	}),
	"issue_comment.created": webhook.IssueComment{Remark: webhook.Remark{
		Origin: origin, Number: 5, Open: true, ID: 1234, Body: "/rebench\r\n", Author: webhook.User{Login: "bob[bot]", Bot: true},
	}},
	"pull_request_review.submitted": webhook.Review{
		Remark: webhook.Remark{Origin: origin, Number: 5, Open: true, ID: 1234, Body: "/approve-policy", Author: webhook.User{Login: "bob"}}, State: "approved", HeadSHA: a,
	},
	"pull_request_review.dismissed": webhook.Review{
		Remark: webhook.Remark{Origin: origin, Number: 5, Open: true, ID: 1234, Body: "/approve-policy", Author: webhook.User{Login: "bob"}}, State: "dismissed", HeadSHA: a,
	},
	"pull_request_review.no-body": webhook.Review{
		Remark: webhook.Remark{Origin: origin, Number: 5, ID: 1235, Author: webhook.User{Login: "bob"}}, State: "commented", HeadSHA: a,
	},
	"pull_request_review_comment.created": webhook.ReviewComment{Remark: webhook.Remark{
		Origin: origin, Number: 5, Open: true, ID: 1234, Body: "/rebench", Author: webhook.User{Login: "bob[bot]", Bot: true},
	}},
	"repository.renamed":             webhook.RepositoryChange{Origin: origin, Action: "renamed", FullNameWas: "acme/cuda"},
	"repository.transferred":         webhook.RepositoryChange{Origin: origin, Action: "transferred", FullNameWas: "oldco/kernels"},
	"repository.transferred-by-user": webhook.RepositoryChange{Origin: origin, Action: "transferred", FullNameWas: "ann/kernels"},
	"repository.archived": webhook.RepositoryChange{
		Action: "archived", Origin: webhook.Origin{Installation: 99, Sender: ann,
			Repository: webhook.Repository{ID: 7, FullName: "acme/kernels", DefaultBranch: "main"}},
	},
	"installation.suspend": webhook.Installation{
		Origin: webhook.Origin{Installation: 99, Sender: ann}, Action: "suspend", Account: webhook.User{Login: "acme"},
	},
	"installation_target.renamed": webhook.InstallationTarget{
		Origin: webhook.Origin{Installation: 99, Sender: ann}, Account: webhook.User{Login: "acme"}, LoginWas: "oldco",
	},
	"issue_comment.on-issue": webhook.Ignored{Reason: "the comment is on an issue, not on a pull request"},
	"merge_group.destroyed": webhook.MergeGroup{
		Origin: origin, Action: "destroyed",
		HeadSHA: a, HeadRef: "refs/heads/gh-readonly-queue/main/pr-5", BaseSHA: b, BaseRef: "refs/heads/main",
	},
	"check_run.requested_action": webhook.CheckRun{
		Origin: origin, Action: "requested_action", AppID: 42, ExternalID: "run-1",
		HeadSHA: a, PullRequests: []int{5}, Button: "rebench",
	},
	"check_suite.rerequested-fork": webhook.CheckSuite{Origin: origin, AppID: 42, HeadSHA: a},
	"push.forced":                  webhook.Push{Origin: origin, Branch: "main", Before: b, After: a},
	"push.tag":                     webhook.Ignored{Reason: "the push is not to a branch"},
	"push.deleted":                 webhook.Push{Origin: origin, Branch: "x", Before: b, After: strings.Repeat("0", 40)},
	"installation_repositories.added": webhook.InstallationRepositories{
		Origin: webhook.Origin{Installation: 99, Sender: ann},
		Added:  []webhook.Repository{{ID: 7, FullName: "acme/kernels"}},
	},
}

func pullRequest(change func(*webhook.PullRequest)) webhook.PullRequest {
	p := webhook.PullRequest{
		Origin: origin, Number: 5, Title: "perf: cp.async", Author: ann, Open: true, Labels: []string{"perf", "l4"},
		HeadSHA: a, HeadRepo: anns, BaseRef: "main",
	}
	change(&p)
	return p
}

// read is a file of testdata and the event that its name begins with.
func read(t testing.TB, name string) (event string, body []byte) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	event, _, _ = strings.Cut(name, ".")
	return event, body
}

func TestDecode(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(payloads) {
		t.Fatalf("%d files for %d payloads: %v", len(files), len(payloads), err)
	}
	for name, want := range payloads {
		t.Run(name, func(t *testing.T) {
			event, body := read(t, name)
			got, err := webhook.Decode(event, body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFork(t *testing.T) {
	for name, want := range map[string]bool{
		"pull_request.synchronize": true, "pull_request.labeled-fork-gone": true, "pull_request.closed-merged": false,
	} {
		if got := payloads[name].(webhook.PullRequest).Fork(); got != want {
			t.Errorf("%s: Fork() = %v", name, got)
		}
	}
}

func TestIgnored(t *testing.T) {
	tests := []struct{ name, event, body, want string }{
		{"unknown event", "star", `{"action":"created"}`, `event "star" is not used`},
		{"unknown event, no JSON", "no_such", `{`, `event "no_such" is not used`},
		{"unknown action", "pull_request", `{"action":"assigned"}`, `action "assigned" of pull_request is not used`},
		{"unknown action, strange fields", "pull_request", `{"action":"new","pull_request":[],"repository":7}`, `action "new" of pull_request is not used`},
		{"edited comment", "issue_comment", `{"action":"edited","comment":{"body":"/override mine"}}`, `action "edited" of issue_comment is not used`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := webhook.Decode(test.event, []byte(test.body))
			if err != nil || got != (webhook.Ignored{Reason: test.want}) {
				t.Errorf("got %#v, %v", got, err)
			}
		})
	}
}

func TestDecodeMistakes(t *testing.T) {
	sub := func(name, old, new string) string {
		_, body := read(t, name)
		if !strings.Contains(string(body), old) {
			t.Fatalf("%s holds no %s", name, old)
		}
		return strings.Replace(string(body), old, new, 1)
	}
	const pr, comment, button = "pull_request.synchronize", "issue_comment.created", "check_run.requested_action"
	tests := []struct{ name, event, body, want string }{
		{"empty", "push", "", "the JSON is broken at its beginning: unexpected end of JSON input"},
		{"a list", "push", "[1]", "the body is a JSON array and no object"},
		{"null", "push", "null", "ref is missing"},
		{"truncated", "push", `{"repository":{"id":7,"full_name":"acme/ker`, `the JSON is broken near "repository.full_name": unexpected end of JSON input`},
		{"truncated in a list", "pull_request", `{"pull_request":{"labels":[{"name":"a"},{"name":`, `the JSON is broken near "pull_request.labels[1].name": unexpected end of JSON input`},
		{"no JSON in the middle", "push", `{"ref":"a","x":{"y":nil}}`, `the JSON is broken near "x.y": invalid character 'i' in literal null (expecting 'u')`},
		{"trailing text", "push", `{"ref":"a"} x`, "the JSON is broken after its end: invalid character 'x' after top-level value"},
		{"no action", "pull_request", `{}`, "action is missing"},
		{"action no text", "pull_request", `{"action":7}`, "action is a JSON number and should be a Go string"},
		{"no pull request", "pull_request", `{"action":"opened"}`, "pull_request is missing"},
		{"head gone", "pull_request", sub(pr, `"sha": "`+a+`"`, `"was": ""`), "pull_request.head.sha is missing"},
		{"head no text", "pull_request", sub(pr, `"sha": "`+a+`"`, `"sha": 7`), "pull_request.head.sha is a JSON number and should be a Go string"},
		{"head an option", "pull_request", sub(pr, `"sha": "`+a+`"`, `"sha": "--exec=x"`), "pull_request.head.sha is no commit id"},
		{"head too short", "pull_request", sub(pr, `"sha": "`+a+`"`, `"sha": "aaaaaaa"`), "pull_request.head.sha is no commit id"},
		{"base without a branch", "pull_request", sub(pr, `"ref": "main"`, `"ref": ""`), "pull_request.base.ref is missing or empty"},
		{"no number", "pull_request", sub(pr, "  \"number\": 5", "  \"number\": 0"), "pull_request.number is missing or not positive"},
		{"before no commit", "push", sub("push.forced", `"before": "b`, `"before": "z`), "before is no commit id"},
		{"repository a path", "pull_request", sub(pr, "\"repository\": {\n  \"id\": 7,\n  \"full_name\": \"acme/kernels\"", `"repository": {"id": 7, "full_name": "acme/.."`), "repository.full_name is not owner/name"},
		{"head repository", "pull_request", sub(pr, "ann/kernels", "ann"), "pull_request.head.repo.full_name is not owner/name"},
		{"comment by nobody", "issue_comment", sub(comment, `"login": "bob[bot]"`, `"was": ""`), "comment.user.login is missing or empty"},
		{"comment without a repository", "issue_comment", sub(comment, `"repository"`, `"was"`), "repository.id is missing or not positive"},
		{"button without a name", "check_run", sub(button, `"identifier": "rebench"`, `"x": 1`), "requested_action.identifier is missing or empty"},
		{"push to nothing", "push", sub("push.forced", "refs/heads/main", "refs/heads/"), "ref is missing or empty"},
		{"review by nobody", "pull_request_review", sub("pull_request_review.submitted", `"login": "bob"`, `"was": ""`), "review.user.login is missing or empty"},
		{"review of no commit", "pull_request_review", sub("pull_request_review.submitted", `"commit_id": "a`, `"commit_id": "z`), "review.commit_id is no commit id"},
		{"review comment nowhere", "pull_request_review_comment", sub("pull_request_review_comment.created", `"number": 5`, `"number": -5`), "pull_request.number is missing or not positive"},
		{"renamed from a path", "repository", sub("repository.renamed", `"from": "cuda"`, `"from": ".."`), "changes.repository.name.from, repository.full_name is not owner/name"},
		{"transferred from nobody", "repository", sub("repository.transferred", `"login": "oldco"`, `"x": ""`), "changes.owner.from, repository.full_name is not owner/name"},
		{"account renamed from nothing", "installation_target", sub("installation_target.renamed", `"from": "oldco"`, `"x": ""`), "changes.login.from is missing or empty"},
		{"comment too long", "issue_comment", sub(comment, "/rebench", strings.Repeat("x", 4*65536+1)), "comment.body has 262147 bytes, which is more than 262144"},
		{"title too long", "pull_request", sub(pr, "perf: cp.async", strings.Repeat("x", 1025)), "pull_request.title has 1025 bytes, which is more than 1024"},
		{"labels without end", "pull_request", sub(pr, `"labels": [`, `"labels": [`+strings.Repeat("{},", 99)), "pull_request.labels has 101 entries, which is more than 100"},
		{"a date of a megabyte", "pull_request", sub(pr, `"draft"`, `"updated_at": "`+strings.Repeat("9", 1<<20)+`", "draft"`), `pull_request: parsing time "` + strings.Repeat("9", 186)},
		{"installation without an id", "installation", `{"action":"created"}`, "installation.id is missing or not positive"},
		{"installed repository", "installation", `{"action":"created","installation":{"id":1},"repositories":[{"id":1,"full_name":"a/b"},{"id":2}]}`, "repositories[1].full_name is not owner/name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := webhook.Decode(test.event, []byte(test.body))
			if err == nil || got != nil {
				t.Fatalf("got %#v, %v", got, err)
			}
			if diff := cmp.Diff("reading a "+test.event+" delivery: "+test.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
