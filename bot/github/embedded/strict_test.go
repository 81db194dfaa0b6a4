package embedded_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestAsStrictAsGitHub checks that the hub refuses the same calls as GitHub, with the same status.
// A laxer hub would let mistakes of the bot pass the tests.
func TestAsStrictAsGitHub(t *testing.T) {
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	sha, none := pr.HeadSHA(), strings.Repeat("a", 40)
	token := w.inst.Token()
	call := func(method, path string, body any) (int, map[string]any) {
		t.Helper()
		raw, ok := body.(string)
		if !ok && body != nil {
			b, err := json.Marshal(body)
			w.no(err)
			raw = string(b)
		}
		rq, err := http.NewRequestWithContext(w.ctx, method, w.hub.URL()+"/api/v3"+path, strings.NewReader(raw))
		w.no(err)
		rq.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(rq)
		w.no(err)
		defer answer.Body.Close()
		var buffer bytes.Buffer
		_, err = buffer.ReadFrom(answer.Body)
		w.no(err)
		var out map[string]any
		_ = json.Unmarshal(buffer.Bytes(), &out) // out stays nil if the answer is a list
		return answer.StatusCode, out
	}
	type object = map[string]any
	with := func(a, b object) object {
		out := maps.Clone(a)
		maps.Copy(out, b)
		return out
	}
	run := func(more object) object { return with(object{"name": "kernelgate", "head_sha": sha}, more) }
	output := func(more object) object {
		return run(object{"output": with(object{"title": "t", "summary": "s"}, more)})
	}
	mark := object{"path": "a.cu", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
	annotation := func(more object) object { return output(object{"annotations": []any{with(mark, more)}}) }
	marks := func(n int) object {
		all := make([]any, n)
		for i := range all {
			all[i] = mark
		}
		return output(object{"annotations": all})
	}
	button := object{"label": "a", "description": "b", "identifier": "c"}
	const repo = "/repos/alice/kernels"
	runs := repo + "/check-runs"
	status, made := call("POST", runs, run(object{"status": "completed", "conclusion": "success", "completed_at": "2026-01-01T00:00:00Z"}))
	if status != 201 {
		t.Fatalf("a check run is refused with %d: %v", status, made)
	}
	check := runs + "/" + number(made["id"])
	status, made = call("POST", repo+"/issues/1/comments", object{"body": "x"})
	if status != 201 {
		t.Fatalf("a comment is refused with %d: %v", status, made)
	}
	reactions := repo + "/issues/comments/" + number(made["id"]) + "/reactions"
	for name, c := range map[string]struct {
		method, path string
		body         any
		want         int
	}{
		"a summary of 90,000 bytes and 30,000 characters": {"POST", runs, output(object{"summary": strings.Repeat("€", 30000)}), 422},
		"a summary of 65,535 bytes":                       {"POST", runs, output(object{"summary": strings.Repeat("x", 65535)}), 201},
		"a summary of 65,536 bytes":                       {"POST", runs, output(object{"summary": strings.Repeat("x", 65536)}), 422},
		"a text of 65,536 bytes":                          {"POST", runs, output(object{"text": strings.Repeat("x", 65536)}), 422},
		"50 annotations":                                  {"POST", runs, marks(50), 201},
		"51 annotations":                                  {"POST", runs, marks(51), 422},
		"an annotation's message of 70 KB":                {"POST", runs, annotation(object{"message": strings.Repeat("x", 70000)}), 422},
		"an annotation's details of 70 KB":                {"POST", runs, annotation(object{"raw_details": strings.Repeat("x", 70000)}), 422},
		"an annotation's title of 300":                    {"POST", runs, annotation(object{"title": strings.Repeat("x", 300)}), 422},
		"line 0":                                          {"POST", runs, annotation(object{"start_line": 0, "end_line": 0}), 422},
		"an end before the start":                         {"POST", runs, annotation(object{"start_line": 2}), 422},
		"a line that is a text":                           {"POST", runs, annotation(object{"start_line": "1"}), 422},
		"column 0":                                        {"POST", runs, annotation(object{"start_column": 0}), 422},
		"columns of two lines":                            {"POST", runs, annotation(object{"end_line": 2, "start_column": 1}), 422},
		"an unknown level":                                {"POST", runs, annotation(object{"annotation_level": "error"}), 422},
		"a details_url that is none":                      {"POST", runs, run(object{"details_url": "nonsense"}), 422},
		"a date that is none":                             {"POST", runs, run(object{"started_at": "yesterday"}), 422},
		"an output without a title":                       {"POST", runs, run(object{"output": object{"summary": "s"}}), 422},
		"the conclusion stale":                            {"POST", runs, run(object{"status": "completed", "conclusion": "stale"}), 422},
		"the status waiting":                              {"POST", runs, run(object{"status": "waiting"}), 422},
		"completed without a conclusion":                  {"POST", runs, run(object{"status": "completed"}), 422},
		"completed_at without a conclusion":               {"POST", runs, run(object{"completed_at": "2026-01-01T00:00:00Z"}), 422},
		"four buttons":                                    {"POST", runs, run(object{"actions": []any{button, button, button, button}}), 422},
		"a short SHA":                                     {"POST", runs, object{"name": "x", "head_sha": sha[:10]}, 422},
		"an unknown SHA":                                  {"POST", runs, object{"name": "x", "head_sha": none}, 422},
		"an empty body":                                   {"POST", runs, nil, 422},
		"no JSON":                                         {"POST", runs, "{", 400},
		"back to in_progress":                             {"PATCH", check, object{"status": "in_progress"}, 200},
		"an empty name":                                   {"PATCH", check, object{"name": ""}, 422},
		"a check run that is not there":                   {"PATCH", runs + "/1", object{"status": "in_progress"}, 404},
		"check runs of an unknown SHA":                    {"GET", repo + "/commits/" + none + "/check-runs", nil, 422},
		"an unknown filter":                               {"GET", repo + "/commits/" + sha + "/check-runs?filter=nonsense", nil, 422},
		"an empty comment":                                {"POST", repo + "/issues/1/comments", object{"body": ""}, 422},
		"a blank comment":                                 {"POST", repo + "/issues/1/comments", object{"body": " \n"}, 422},
		"a comment of 65,537 bytes":                       {"POST", repo + "/issues/1/comments", object{"body": strings.Repeat("x", 65537)}, 422},
		"a comment of 65,538 bytes and fewer characters":  {"POST", repo + "/issues/1/comments", object{"body": strings.Repeat("€", 21846)}, 422},
		"a comment on nothing":                            {"POST", repo + "/issues/99/comments", object{"body": "x"}, 404},
		"an unknown reaction":                             {"POST", reactions, object{"content": "tada"}, 422},
		"a status, which the manifest does not ask for":   {"POST", repo + "/statuses/" + sha, object{"state": "success"}, 403},
		"an unknown state of pull requests":               {"GET", repo + "/pulls?state=nonsense", nil, 422},
		"an unknown order of pull requests":               {"GET", repo + "/pulls?direction=down", nil, 422},
		"more a page than GitHub has":                     {"GET", repo + "/pulls?per_page=1000", nil, 200},
		"the permission of nobody":                        {"GET", repo + "/collaborators/nobody-at-all/permission", nil, 404},
		"the permission of a bot":                         {"GET", repo + "/collaborators/kernelgate%5Bbot%5D/permission", nil, 404},
		"another repository":                              {"GET", "/repos/alice/none/pulls", nil, 404},
	} {
		if got, answer := call(c.method, c.path, c.body); got != c.want {
			t.Errorf("%s: %d %v %v, want %d", name, got, answer["message"], answer["errors"], c.want)
		}
	}
}

// number formats an id from JSON for a path.
func number(id any) string {
	raw, err := json.Marshal(int64(id.(float64)))
	if err != nil {
		panic(err) // a number always marshals
	}
	return string(raw)
}

// TestSlowDeliveryLists checks that a slow list of deliveries ends when the client gives up.
func TestSlowDeliveryLists(t *testing.T) {
	w := newWorld(t, embedded.Options{})
	key, err := testKey()
	w.no(err)
	get := func(client *http.Client, query string) (int, error) {
		t.Helper()
		rq, err := http.NewRequestWithContext(w.ctx, "GET", w.hub.URL()+"/app/hook/deliveries"+query, nil)
		w.no(err)
		rq.Header.Set("Authorization", "Bearer "+w.jwt(key, 5*time.Minute))
		answer, err := client.Do(rq)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	w.hub.SetSlowDeliveryLists(time.Hour)
	if code, err := get(&http.Client{Timeout: 20 * time.Millisecond}, ""); err == nil {
		t.Errorf("a slow list was answered with %d", code)
	}
	w.hub.SetSlowDeliveryLists(0)
	for query, want := range map[string]int{"": 200, "?status=failure": 200, "?status=lost": 422} {
		if code, err := get(http.DefaultClient, query); err != nil || code != want {
			t.Errorf("a list with %q: %d, %v", query, code, err)
		}
	}
}
