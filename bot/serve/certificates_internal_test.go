package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// expiries returns what /metrics has about certificates: keys with subjects, and whether a date is known.
func expiries(t *testing.T, s *Server) map[string]bool {
	t.Helper()
	out := make(chan prometheus.Metric, 100)
	observer{s}.collectCertificates(out)
	close(out)
	all := map[string]bool{}
	for m := range out {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		of := map[string]string{}
		for _, l := range d.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		id := fmt.Sprintf("%s %s %s", of["key"], of["subject"], of["serial"])
		if _, twice := all[id]; twice {
			t.Errorf("%s is there twice, which makes /metrics fail", id)
		}
		all[id] = d.GetGauge().GetValue() > 0
	}
	return all
}

// A bundle of two authorities is two figures, a certificate that is in a file twice is one, and a file that cannot be read counts
// as expired.
func TestCertificateExpiry(t *testing.T) {
	j, err := journal.Open(t.Context(), journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	a, b := createSecrets(t), createSecrets(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(parts ...string) {
		t.Helper()
		var text strings.Builder
		for _, part := range parts {
			text.Write(readFile(t, part))
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{Journal: j, opt: Options{Config: Config{NATSRoots: file, NATSCert: filepath.Join(a, "nats-client/tls.crt")}}}
	write(a+"/ca/ca.crt", b+"/ca/ca.crt", a+"/ca/ca.crt")
	if all := expiries(t, s); len(all) != 3 {
		t.Errorf("figures: %v", all)
	}
	write(a + "/ca/ca.key")
	if all := expiries(t, s); len(all) != 2 || all["nats_ca_file  "] {
		t.Errorf("without a certificate in the file: %v", all)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if known, ok := expiries(t, s)["nats_ca_file  "]; known || !ok {
		t.Error("a missing file does not count as expired")
	}
	s.opt.Config = Config{}
	if all := expiries(t, s); len(all) > 0 {
		t.Errorf("without certificates: %v", all)
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
