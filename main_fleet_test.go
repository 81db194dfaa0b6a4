package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/fleet"
)

func TestFleetCommand(t *testing.T) {
	bot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer operator's":
			http.Error(w, "unauthorized", http.StatusUnauthorized)
		case r.URL.Path == fleet.OperatorPrefix+"runners":
			fmt.Fprint(w, `[{"name":"gpu1","labels":["l4","gpu"],"drained":{"at":"2026-05-04T12:00:00Z","why":"new driver"}}]`)
		case r.URL.Path != fleet.OperatorPrefix+"runners/gpu1/drain" && r.URL.Path != fleet.OperatorPrefix+"runners/gpu1/return":
			http.Error(w, "no runner is called so", http.StatusNotFound)
		}
	}))
	defer bot.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("operator's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"list --server " + bot.URL + " --token-file " + token, exitPass, "gpu1    away   l4,gpu  -     -      -   drained 2026-05-04 12:00: new driver"},
		{"drain gpu1 --why driver --server " + bot.URL + " --token-file " + token, exitPass, "gpu1 takes no more jobs."},
		{"return gpu1 --server " + bot.URL + " --token-file " + token, exitPass, "gpu1 takes jobs again."},
		{"return gpu2 --server " + bot.URL + " --token-file " + token, exitError, "gpu2: the bot answers 404: no runner is called so"},
		{"list --server " + bot.URL + " --token-file " + os.Args[0] + ".none", exitInput, "operator_token_file"},
		{"list --server http://bot.example.com --token-file " + token, exitInput, "use https://"},
		{"drain", exitInput, "requires at least 1 arg"},
	} {
		var out, errors bytes.Buffer
		status := run(append([]string{"fleet"}, strings.Fields(tt.args)...), &out, &errors)
		if text := out.String() + errors.String(); status != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("fleet %s: %d\n%s", tt.args, status, text)
		}
	}
}

func TestFleetList(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	err := printFleet(&out, []fleet.Listed{
		{Name: "a", Labels: []string{"l4"}, Host: "box", LastSeen: now.Add(-2 * time.Second), Job: "j", Kernel: "sdpa", Since: now.Add(-4 * time.Minute)},
		{Name: "b", Labels: []string{"l4"}, Host: "box", LastSeen: now.Add(-time.Second)},
		{Name: "c", Labels: []string{"build-nvcc"}, Host: "box", LastSeen: now, Job: "k", Kernel: "gemm", Since: now},
	}, now)
	const want = `RUNNER  STATE     LABELS      HOST  HEARD   AT             NOTE
a       busy      l4          box   2s ago  sdpa for 4m0s  
b       idle      l4          box   1s ago  -              
c       building  build-nvcc  box   0s ago  gemm for 0s    builds for the others, measures nothing
`
	if err != nil || out.String() != want {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
