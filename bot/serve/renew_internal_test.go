package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// The steps that replace all certificates and their CA.
var renewal = []string{"--renew", "--renew-ca", "--renew-ca", "--renew-ca"}

// While pods are replaced one by one, those with the files before a step and those with the files after it work together: each
// trusts the certificates of the other.
func TestRenewedCertificatesAreTrusted(t *testing.T) {
	before := createSecrets(t)
	begun := readFile(t, before+"/ca/ca.crt")
	for i, step := range renewal {
		after := t.TempDir()
		if err := os.CopyFS(after, os.DirFS(before)); err != nil {
			t.Fatal(err)
		}
		said := runScript(t, step, after)
		if step == "--renew-ca" && !strings.HasPrefix(said, fmt.Sprintf("step %d of 3", i)) {
			t.Errorf("step %d says %q", i, said)
		}
		for _, folder := range []string{"bot-tls", "nats-tls", "nats-client"} {
			for _, trusting := range []string{before, after} {
				for _, shown := range []string{before, after} {
					if err := trusts(filepath.Join(trusting, "trust/ca.crt"), filepath.Join(shown, folder)); err != nil {
						t.Errorf("%d, %s: %s: %v", i, step, folder, err)
					}
				}
			}
			if ca, own := readFile(t, after+"/trust/ca.crt"), readFile(t, filepath.Join(after, folder, "ca.crt")); string(ca) != string(own) {
				t.Errorf("%d, %s: %s trusts others than runners do", i, step, folder)
			}
		}
		before = after
	}
	if strings.Contains(string(readFile(t, before+"/trust/ca.crt")), string(begun)) {
		t.Error("the old CA is still trusted")
	}
	list, err := filepath.Glob(before + "/*/*")
	if err != nil || len(list) != 16 || slices.ContainsFunc(list, func(name string) bool { return strings.Contains(name, "new.") || strings.Contains(name, "old.") }) {
		t.Errorf("left over: %v, %v", list, err)
	}
}

// A step that was interrupted is completed by the next call: no certificate of an untrusted CA is ever used.
func TestInterruptedRenewal(t *testing.T) {
	dir := createSecrets(t)
	runScript(t, "--renew-ca", dir)
	// As if the second step had ended before it made the certificates.
	for _, move := range [][2]string{{"ca.crt", "old.crt"}, {"next.key", "ca.key"}, {"next.crt", "ca.crt"}} {
		if err := os.Rename(filepath.Join(dir, "ca", move[0]), filepath.Join(dir, "ca", move[1])); err != nil {
			t.Fatal(err)
		}
	}
	if said := runScript(t, "--renew-ca", dir); !strings.HasPrefix(said, "step 2 of 3") {
		t.Errorf("after an interrupted step 2 it says %q", said)
	}
	for _, folder := range []string{"bot-tls", "nats-tls", "nats-client"} {
		if err := trusts(dir+"/trust/ca.crt", filepath.Join(dir, folder)); err != nil {
			t.Error(err)
		}
	}
	if said := runScript(t, "--renew-ca", dir); !strings.HasPrefix(said, "step 3 of 3") {
		t.Errorf("after step 2 it says %q", said)
	}
}

// trusts checks a certificate and its key against a bundle of authorities.
func trusts(bundle, folder string) error {
	text, err := os.ReadFile(bundle)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return err
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// The journal takes writes through a bot's connection while the NATS servers are replaced one by one at each step to a
// new CA. The connection reads the renewed files, so the bot need not be restarted.
func TestOperateRenewal(t *testing.T) {
	if os.Getenv("KERNELGATE_OPERATE") == "" {
		t.Skip("make operate-test runs it: it takes a minute")
	}
	s := newShipped(t)
	for i := range s.all {
		s.start(i, false)
	}
	j, err := journal.Open(t.Context(), journalOptions(Options{Config: s.config()}, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	first := j.ServerCertificate().SerialNumber
	var last uint64
	write := func() {
		t.Helper()
		for tries := 0; ; tries++ { // while a new leader is elected, which takes seconds, writes fail
			seq, err := j.Append(t.Context(), "run", last, "kind", 1)
			if err == nil {
				last = seq
				return
			}
			if newest, errLast := j.Last(t.Context(), "run"); errLast == nil && newest.Seq > last {
				last = newest.Seq // it was stored, and the answer was lost
				return
			}
			if tries == 30 {
				t.Fatal(err)
			}
			<-time.After(time.Second)
		}
	}
	write()
	ready, _ := s.probes()
	ready.Period = 1 // a fifth of the kubelet's
	for _, step := range renewal[1:] {
		runScript(t, step, s.secrets)
		for i := range s.all {
			s.all[i].Shutdown()
			s.all[i].WaitForShutdown()
			s.start(i, false)
			s.awaitReady(i, ready)
			write()
		}
	}
	if c := j.ServerCertificate(); c == nil || c.SerialNumber.Cmp(first) == 0 || c.CheckSignatureFrom(authorityOf(t, s.secrets)) != nil {
		t.Errorf("the bot is connected to %v", c)
	}
	t.Logf("result: a new CA in three steps: 9 restarts of a NATS server with new files, and the bot's connection wrote after each")
}

func authorityOf(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	all, err := readCertificates(dir + "/ca/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}
