package actions_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const workflowFile = "../../.github/workflows/kernelgate.yml"

type workflowFlow struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	// Jobs have the concurrency, not the whole workflow: GitHub applies that before a job's "if".
	Jobs map[string]workflowJob `yaml:"jobs"`
}

type workflowJob struct {
	If          string `yaml:"if"`
	Concurrency struct {
		Group  string `yaml:"group"`
		Cancel string `yaml:"cancel-in-progress"`
		Queue  string `yaml:"queue"`
	} `yaml:"concurrency"`
	RunsOn      []string          `yaml:"runs-on"`
	Timeout     int               `yaml:"timeout-minutes"`
	Permissions map[string]string `yaml:"permissions"`
	Steps       []step            `yaml:"steps"`
}

func parseWorkflow(t *testing.T) (flow workflowFlow, text string) {
	t.Helper()
	text = parse(t, workflowFile, &flow)
	return flow, text
}

// TestWorkflow checks that the workflow grants exactly the permissions that the program advises.
// Its jobs differ only in when they run and what they wait for.
func TestWorkflow(t *testing.T) {
	flow, _ := parseWorkflow(t)
	for _, event := range []string{"pull_request", "merge_group", "issue_comment", "pull_request_review", "pull_request_review_comment"} {
		if _, ok := flow.On[event]; !ok {
			t.Errorf("nothing happens on %s", event)
		}
	}
	for event, action := range map[string]string{"pull_request": "edited", "pull_request_review": "dismissed"} { // a new base, and a dismissed review
		if on, _ := flow.On[event].(map[string]any); !slices.Contains(on["types"].([]any), any(action)) {
			t.Errorf("nothing happens where a %s is %s", event, action)
		}
	}
	if _, clash := flow.Jobs["kernelgate"]; clash || len(flow.Jobs) != 2 {
		t.Error("want two jobs, and none by the required status's name")
	}
	if len(flow.Permissions) != 0 {
		t.Errorf("permissions for all jobs: %v", flow.Permissions)
	}
	want := map[string]string{"contents": "read", "checks": "write", "statuses": "write", "pull-requests": "write", "issues": "write"}
	for name, job := range flow.Jobs {
		if len(job.Permissions) != len(want) {
			t.Errorf("%s: permissions %v, want %v", name, job.Permissions, want)
		}
		for permission, level := range want {
			if job.Permissions[permission] != level {
				t.Errorf("%s: permission %s is %q, want %q", name, permission, job.Permissions[permission], level)
			}
		}
		if job.Timeout == 0 || !slices.Contains(job.RunsOn, "self-hosted") {
			t.Errorf("%s: runs on %v for %d minutes", name, job.RunsOn, job.Timeout)
		}
		for _, s := range job.Steps {
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s: an expression in a script, where a stranger's words would be code: %s", name, s.Run)
			}
			if strings.HasPrefix(s.Uses, "actions/checkout@") && (s.With["persist-credentials"] != false || strings.Contains(s.With["ref"].(string), "head")) {
				t.Errorf("%s: the checkout keeps a token, or is the change's: %v", name, s.With)
			}
		}
		if job.Concurrency.Queue == "max" && job.Concurrency.Cancel != "" {
			t.Errorf("%s: GitHub refuses queue: max together with cancel-in-progress", name)
		}
	}
	gate, command := flow.Jobs["gate"], flow.Jobs["command"]
	if a, b := asYAML(t, gate.Steps), asYAML(t, command.Steps); a != b {
		t.Errorf("the jobs do different things:\n%s\n%s", a, b)
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWorkflowCanBeCopied checks that the workflow contains nothing that is specific to this
// repository.
func TestWorkflowCanBeCopied(t *testing.T) {
	_, text := parseWorkflow(t)
	_, rest, _ := strings.Cut(text, "\nname: ")
	here, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range here {
		if name := entry.Name(); entry.IsDir() && name != ".git" && name != ".github" {
			if regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `/`).MatchString(rest) {
				t.Errorf("it refers to this repository's folder %s", name)
			}
		} else if !entry.IsDir() && strings.Contains(rest, name) {
			t.Errorf("it refers to this repository's file %s", name)
		}
	}
	if strings.Contains(rest, "./") || strings.Contains(rest, "kernelgate/kernelgate") {
		t.Error("it refers to an action of this repository")
	}
	ours, err := policy.Parse("kernelgate.yaml", []byte(read("../../.github/kernelgate.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	words := ours.Devices.All()
	for _, rule := range ours.Rules {
		words = append(words, rule.When.Labels...)
	}
	if len(words) == 0 {
		t.Fatal("the policy names neither devices nor labels")
	}
	for _, word := range append(words, "main") {
		if regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(word) + `\b`).MatchString(rest) {
			t.Errorf("it refers to %s, which this repository's policy or branch is called by", word)
		}
	}
	if policy := ".github/kernelgate.yaml"; !strings.Contains(text, policy) {
		t.Errorf("it does not say that it needs %s", policy)
	}
}

// TestActionsArePinned checks that each action is pinned to one commit, the same everywhere, with a
// comment that names the release. A tag can be moved to different code, a commit cannot.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.y*ml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, actionPath)
	pinned := regexp.MustCompile(`^\s*(?:- )?uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v[0-9]+\.[0-9]+\.[0-9]+)$`)
	seen := map[string]string{}
	for _, file := range files {
		for line := range strings.Lines(read(file)) {
			line = strings.TrimRight(line, "\n")
			if !regexp.MustCompile(`\buses:`).MatchString(line) {
				continue
			}
			m := pinned.FindStringSubmatch(line)
			if m == nil {
				t.Errorf("%s: not pinned by a commit with its release: %s", file, line)
				continue
			}
			if pin := m[2] + " " + m[3]; seen[m[1]] != "" && seen[m[1]] != pin {
				t.Errorf("%s: %s is %s here and %s elsewhere", file, m[1], pin, seen[m[1]])
			} else {
				seen[m[1]] = pin
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("only %v are used", seen)
	}
}

// job returns the job that an event starts, as GitHub decides it, and its concurrency group.
func (f workflowFlow) job(t *testing.T, event string, payload []byte) (name, group string, cancels bool) {
	t.Helper()
	github := map[string]any{"event_name": event, "run_id": 1.0}
	var body any
	if err := json.Unmarshal(payload, &body); err != nil {
		t.Fatal(err)
	}
	github["event"] = body
	for job, spec := range f.Jobs {
		if !truthy(evaluate(t, spec.If, github)) {
			continue
		}
		if name != "" {
			t.Errorf("%s starts two jobs", event)
		}
		name, group = job, interpolate(t, spec.Concurrency.Group, github)
		cancels = interpolate(t, spec.Concurrency.Cancel, github) == "true"
	}
	return name, group, cancels
}

// TestWorkflowConditions checks that strangers, programs, ordinary comments and descriptions start
// nothing.
func TestWorkflowConditions(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	flow, _ := parseWorkflow(t)
	started := func(what, event, want string) {
		t.Helper()
		if name, _, _ := flow.job(t, event, w.newest(event)); name != want {
			t.Errorf("%s starts %q, want %q", what, name, want)
		}
	}
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	started("a pull request", "pull_request", "gate")
	for _, test := range []struct{ who, text, want string }{
		{"walt", "/ok-to-test 0123", "command"},
		{"olga", "Well.\n\n/rebench", "command"},
		{"walt", "/approve-policy 0123", "command"},
		{"walt", "/explain", "command"},
		{"walt", "/why mission", "command"},
		{"walt", "Nice work!", ""},
		{"stranger", "/rebench", ""},
		{"stranger", "/ok-to-test 0123", ""},
	} {
		w.hub.CreateUser(test.who)
		_, err := pr.Comment(test.who, test.text)
		w.no(err)
		started(test.text+" by "+test.who, "issue_comment", test.want)
		_, err = pr.CommentOn(test.who, "kernels/scale/scale.c", 1, test.text)
		w.no(err)
		started(test.text+" on a line by "+test.who, "pull_request_review_comment", test.want)
	}
	w.no(pr.Review("olga", "APPROVE", ""))
	started("an approving review", "pull_request_review", "command")
	w.no(pr.Review("olga", "COMMENT", "Hm."))
	started("a remark", "pull_request_review", "")
	w.no(pr.Review("stranger", "APPROVE", "/rebench"))
	started("a stranger's review", "pull_request_review", "")
	w.no(pr.Edit("walt", "", "Other words.", ""))
	started("another description", "pull_request", "")
	w.no(pr.Edit("walt", "Another title", "", ""))
	started("another title", "pull_request", "gate")
	w.no(pr.Label("walt", "anything"))
	started("a label", "pull_request", "gate")
	w.must(w.act("pull_request"), "PASS", "", 0)
	_, err := pr.Comment("walt", "/help")
	w.no(err)
	w.instead = map[string]string{`"type":"User"`: `"type":"Bot"`}
	started("a program's /help", "issue_comment", "")
	w.instead = map[string]string{`"pull_request":{`: `"not_a_pull_request":{`}
	started("a comment on an issue", "issue_comment", "")
}

// A slot models a concurrency group of GitHub: one job runs, and of those that wait all but the
// last are cancelled, unless the group has a queue.
type slot struct {
	running string
	waiting []string
}

// TestWaitingCommandsStay checks that nothing cancels a command that waits for its turn, and that a
// push cancels only the measurement of the previous head.
func TestWaitingCommandsStay(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	flow, _ := parseWorkflow(t)
	slots, cancelled := map[string]*slot{}, []string{}
	happens := func(what, event string) {
		t.Helper()
		name, group, cancels := flow.job(t, event, w.newest(event))
		if name == "" {
			return
		}
		s := slots[group]
		switch {
		case s == nil:
			slots[group] = &slot{running: what}
		case cancels:
			cancelled = append(append(cancelled, s.running), s.waiting...)
			slots[group] = &slot{running: what}
		case flow.Jobs[name].Concurrency.Queue == "max":
			s.waiting = append(s.waiting, what)
		default:
			cancelled = append(cancelled, s.waiting...)
			s.waiting = []string{what}
		}
	}
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("theirs", source("speed 1.3"), embedded.PROptions{HeadRepo: fork, Author: "eve"})
	happens("opened", "pull_request")
	say := func(who, text string) {
		t.Helper()
		_, err := pr.Comment(who, text)
		w.no(err)
		happens(text, "issue_comment")
	}
	say("walt", "/explain")
	say("walt", "/ok-to-test "+pr.HeadSHA())
	say("eve", "Thank you!")
	say("walt", "/help")
	say("eve", "/rebench")
	w.no(pr.Review("walt", "APPROVE", "Fine."))
	happens("a review", "pull_request_review")
	w.no(pr.Label("walt", "fast"))
	happens("a label", "pull_request")
	_, err = fork.Push("theirs", source("speed 1.4"), "more")
	w.no(err)
	happens("a push", "pull_request")
	if want := []string{"opened", "a label"}; !slices.Equal(cancelled, want) {
		t.Errorf("cancelled are %q, want what the push has overtaken, %q", cancelled, want)
	}
}
