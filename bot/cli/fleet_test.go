package cli

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
	"github.com/kernelgate/kernelgate/runners/protocol"
)

func TestFleetCommand(t *testing.T) {
	bot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer operator's":
			http.Error(w, "unauthorized", http.StatusUnauthorized)
		case r.URL.Path == fleet.OperatorPrefix+"runners":
			fmt.Fprint(w, `[{"name":"gpu1","labels":["l4","gpu"],"drained":{"at":"2026-05-04T12:00:00Z","why":"new driver"}}]`)
		case r.URL.Path != fleet.OperatorPrefix+"runners/gpu1/drain" && r.URL.Path != fleet.OperatorPrefix+"runners/gpu1/return" && r.URL.Path != fleet.OperatorPrefix+"runners/gpu1/2/test":
			http.Error(w, "no runner has the name", http.StatusNotFound)
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
		{"list --server " + bot.URL + " --token-file " + token, exitPass, "gpu1    away   l4,gpu  -     -     -    -    -          drained 2026-05-04 12:00: new driver"},
		{"drain gpu1 --why driver --server " + bot.URL + " --token-file " + token, exitPass, "gpu1 takes no more jobs."},
		{"return gpu1 --server " + bot.URL + " --token-file " + token, exitPass, "gpu1 takes jobs again."},
		{"test gpu1/2 --server " + bot.URL + " --token-file " + token, exitPass, "gpu1/2 runs its self-test before its next job."},
		{"return gpu2 --server " + bot.URL + " --token-file " + token, exitError, "gpu2: the bot answers 404: no runner has the name"},
		{"list --server " + bot.URL + " --token-file " + os.Args[0] + ".none", exitInput, "operator_token_file"},
		{"list --server http://bot.example.com --token-file " + token, exitInput, "use https://"},
		{"drain", exitInput, "requires at least 1 arg"},
	} {
		var out, errors bytes.Buffer
		status := Run(append([]string{"fleet"}, strings.Fields(tt.args)...), &out, &errors)
		if text := out.String() + errors.String(); status != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("fleet %s: %d\n%s", tt.args, status, text)
		}
	}
}

func TestFleetList(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	test := protocol.SelfTest{At: now.Add(-time.Hour), Passed: true, Difference: 0.0012, Micros: 102.41}
	bad := protocol.SelfTest{At: now.Add(-time.Hour), Why: "A/A"}
	err := printFleet(&out, []fleet.Listed{
		{Runner: fleet.Runner{Name: "a/0", Labels: []string{"l4"}, Host: "box"}, LastSeen: now.Add(-2 * time.Second), Job: "j", Kernel: "sdpa", Since: now.Add(-4 * time.Minute),
			Health: &protocol.Health{GPU: &protocol.GPU{Name: "NVIDIA L4", SMClock: 2040, Celsius: 61, Watts: 71.6, Throttled: []string{"sw-power-cap"}}}, Availability: fleet.Availability{Tests: []protocol.SelfTest{bad, test}}},
		{Runner: fleet.Runner{Name: "b", Labels: []string{"l4"}, Host: "box", Outdated: "old"}, LastSeen: now.Add(-time.Second),
			Availability: fleet.Availability{Quarantined: &fleet.Decision{At: now, Why: "its self-test failed: A/A"}, Tests: []protocol.SelfTest{bad}}},
		{Runner: fleet.Runner{Name: "c", Labels: []string{"build-nvcc"}, Host: "box"}, LastSeen: now, Job: "k", Kernel: "gemm", Since: now},
	}, now)
	const want = `RUNNER  STATE        LABELS      HOST  SEEN    JOB            GPU                                  SELF-TEST                     NOTE
a/0     busy         l4          box   2s ago  sdpa for 4m0s  L4 2040 MHz 61 °C 72 W sw-power-cap  05-04 11:00 +0.1 %, 102.4 µs  
b       quarantined  l4          box   1s ago  -              -                                    05-04 11:00 failed            quarantined 2026-05-04 12:00: its self-test failed: A/A; old
c       building     build-nvcc  box   0s ago  gemm for 0s    -                                    -                             only builds, for other runners
`
	if err != nil || out.String() != want {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
