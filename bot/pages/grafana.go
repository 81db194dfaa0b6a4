package pages

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// grafanaPath is the address for Grafana's JSON data sources (SimpleJson and
// simpod-json-datasource): the test, search and query requests go here.
const grafanaPath = "/api/v1/grafana"

// between separates the parts of a series' name: repository, kernel, shape and device.
const between = " · "

func (s *Server) grafana(mux *http.ServeMux) {
	mux.HandleFunc("GET "+grafanaPath, func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, r, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("POST "+grafanaPath+"/search", func(w http.ResponseWriter, r *http.Request) {
		names, err := s.seriesNames(r.Context(), s.visit(r))
		s.answer(w, r, names, err)
	})
	mux.HandleFunc("POST "+grafanaPath+"/metrics", func(w http.ResponseWriter, r *http.Request) {
		names, err := s.seriesNames(r.Context(), s.visit(r))
		list := []map[string]string{}
		for _, name := range names {
			list = append(list, map[string]string{"label": name, "value": name})
		}
		s.answer(w, r, list, err)
	})
	mux.HandleFunc("POST "+grafanaPath+"/query", func(w http.ResponseWriter, r *http.Request) {
		var asked seriesQuery
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&asked); err != nil || len(asked.Targets) > mostTargets {
			writeJSON(w, r, http.StatusBadRequest, map[string]string{"error": "this is not a query of Grafana's JSON data source, or it asks for too many series"})
			return
		}
		list, err := s.series(r.Context(), s.visit(r), asked)
		s.answer(w, r, list, err)
	})
}

const (
	mostTargets = 50
	mostPoints  = 500
)

// A seriesQuery is the body of a query by Grafana.
type seriesQuery struct {
	Range struct {
		From time.Time `json:"from"`
		To   time.Time `json:"to"`
	} `json:"range"`
	Targets []struct {
		Target string `json:"target"`
	} `json:"targets"`
}

// A series holds a shape's times on the default branch, in microseconds, each with its time in
// milliseconds since 1970.
type series struct {
	Target string       `json:"target"`
	Points [][2]float64 `json:"datapoints"`
}

// seriesNames returns the series of the kernels that the home page lists.
func (s *Server) seriesNames(ctx context.Context, v *visit) ([]string, error) {
	p, _, err := s.measured(ctx, v)
	names := []string{}
	for _, k := range p.Kernels {
		for _, shape := range k.Shapes {
			names = append(names, strings.Join([]string{k.Repo, k.Last.Folder, shape, k.Device}, between))
		}
	}
	return names, err
}

func (s *Server) series(ctx context.Context, v *visit, asked seriesQuery) ([]series, error) {
	list := []series{}
	for _, t := range asked.Targets {
		parts := strings.Split(t.Target, between)
		if len(parts) != 4 {
			continue
		}
		id, _, err := s.repoByName(ctx, v, parts[0])
		if err != nil {
			continue // handled like a series that does not exist
		}
		runs, err := s.Source.OnMain(ctx, id, parts[1], mostPoints)
		if err != nil {
			return nil, err
		}
		found := series{t.Target, [][2]float64{}}
		for _, r := range slices.Backward(runs) {
			p50, ok := r.P50[parts[2]]
			within := (asked.Range.From.IsZero() || !r.Ended.Before(asked.Range.From)) && (asked.Range.To.IsZero() || !r.Ended.After(asked.Range.To))
			if ok && r.Device == parts[3] && within {
				found.Points = append(found.Points, [2]float64{p50, float64(r.Ended.UnixMilli())})
			}
		}
		list = append(list, found)
	}
	return list, nil
}
