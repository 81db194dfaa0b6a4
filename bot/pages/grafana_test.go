package pages_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/bot/pages"
)

// TestGrafana checks that Grafana finds the series and reads the times on the default branch.
func TestGrafana(t *testing.T) {
	w := newWorld(t)
	story(w)
	site := w.site(pages.Everybody{}).URL + "/api/v1/grafana"
	if answer, _ := w.get(site); answer.StatusCode != http.StatusOK {
		t.Errorf("the test of the source answers %s", answer.Status)
	}
	read := func(path, body string, into any) {
		t.Helper()
		answer := w.send(site+path, body)
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", path, answer.Status, err)
		}
	}
	const mission = "org/kernels · kernels/sdpa · mission · NVIDIA H200"
	var names []string
	var metrics []struct{ Label, Value string }
	read("/search", "{}", &names)
	read("/metrics", "{}", &metrics)
	if !slices.Contains(names, mission) || len(metrics) != len(names) || metrics[0].Value != names[0] {
		t.Errorf("the series are %q, %v", names, metrics)
	}
	type series struct {
		Target     string
		Datapoints [][2]float64
	}
	var got []series
	read("/query", `{"range": {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"}, "targets": [{"target": "`+mission+`"}, {"target": "none"}, {"target": "a/b · c · d · e"}]}`, &got)
	if len(got) != 1 || got[0].Target != mission || len(got[0].Datapoints) != 3 {
		t.Fatalf("got %v", got)
	}
	points := got[0].Datapoints
	if points[0][0] < points[2][0] || points[0][1] >= points[2][1] || int64(points[0][1]/1000) < epoch.Unix() {
		t.Errorf("the points are %v: not the times of stages that gain, oldest first", points)
	}
	read("/query", `{"range": {"from": "2026-04-01T00:00:00Z"}, "targets": [{"target": "`+mission+`"}]}`, &got)
	if len(got[0].Datapoints) != 0 {
		t.Errorf("after the range there is %v", got)
	}
	if answer := w.send(site+"/query", "no JSON"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("no query: %s", answer.Status)
	}
	if answer := w.send(site+"/search", "{}", "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("from another site's page: %s", answer.Status)
	}
}
