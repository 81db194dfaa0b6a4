package actions_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/runnable"
)

const (
	actionPath   = "../../action.yml"
	actionFolder = "../../.github/actions/kernelgate/" // what it runs
)

// releases serves downloads as GitHub does: a redirect to a different address, and 404 for a file
// that is not there.
func releases(t *testing.T, files map[string][]byte) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /download/{version}/{file}", func(w http.ResponseWriter, rq *http.Request) {
		if _, ok := files[rq.PathValue("file")]; !ok {
			http.NotFound(w, rq)
			return
		}
		http.Redirect(w, rq, "/objects/"+rq.PathValue("file")+"?token=abc", http.StatusFound)
	})
	mux.HandleFunc("GET /insecure/{version}/{file}", func(w http.ResponseWriter, rq *http.Request) {
		http.Redirect(w, rq, "http://127.0.0.1:1/"+rq.PathValue("file"), http.StatusFound)
	})
	mux.HandleFunc("GET /objects/{file}", func(w http.ResponseWriter, rq *http.Request) {
		if rq.URL.Query().Get("token") != "abc" {
			http.Error(w, "no token", http.StatusForbidden)
			return
		}
		_, _ = w.Write(files[rq.PathValue("file")]) // the client sees a failure
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	return server
}

// releasedArchive is what a release contains, with a program that prints its version.
func releasedArchive(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"LICENSE": "Apache", "kernelgate": "#!/bin/sh\necho kernelgate " + version + "\n"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDownload runs the step of the action that downloads a release, against a server on the
// loopback. Only an archive with the expected digest is used. If there is no archive, the program is
// built from source; if it is a different one, the job fails.
func TestDownload(t *testing.T) {
	machine := "linux_" + runtime.GOARCH
	first, second := releasedArchive(t, "v0.1.0"), releasedArchive(t, "v0.2.0")
	server := releases(t, map[string][]byte{
		"kernelgate_0.1.0_" + machine + ".tar.gz": first, "kernelgate_0.2.0_" + machine + ".tar.gz": second, "kernelgate_0.3.0_" + machine + ".tar.gz": first[:100],
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := func(archive []byte) string { return fmt.Sprintf("%x", sha256.Sum256(archive)) }
	pins := fmt.Sprintf("# comment\nv0.2.0 linux_riscv %064d\nv0.2.0 %s %s\nv0.1.0 %[2]s %[4]s\n", 0, machine, digest(second), digest(first))
	const fromSource = "::notice::kernelgate is built from source"
	tests := []struct {
		name, pins, version, sha256, base string
		fails                             bool
		want                              string // the version of the program, or a part of the output
	}{
		{name: "the newest pinned release", pins: pins, want: "v0.2.0"},
		{name: "an older pinned release", pins: pins, version: "v0.1.0", want: "v0.1.0"},
		{name: "a release with a named digest", version: "v0.1.0", sha256: digest(first), want: "v0.1.0"},
		{name: "no pinned release", want: fromSource},
		{name: "a release that is not there", version: "v9.0.0", sha256: digest(first), want: fromSource},
		{name: "no server", pins: pins, base: "https://127.0.0.1:1", want: fromSource},
		{name: "a redirect to http", pins: pins, base: server.URL + "/insecure", want: fromSource},
		{name: "a different digest", version: "v0.1.0", sha256: digest(second), fails: true, want: digest(first) + ", want " + digest(second) + ": refused"},
		{name: "a truncated archive", version: "v0.3.0", sha256: digest(first), fails: true, want: "refused"},
		{name: "a version without a digest", pins: pins, version: "v0.3.0", fails: true, want: "sha256: no digest is known for v0.3.0"},
		{name: "a digest without a version", pins: pins, sha256: digest(first), fails: true, want: "sha256: name the version, too"},
		{name: "no digest", version: "v0.1.0", sha256: "latest", fails: true, want: `sha256: "latest" is not a SHA-256 digest`},
		{name: "no version", version: "../v0.1.0", sha256: digest(first), fails: true, want: `version: "../v0.1.0" is not a version`},
	}
	script := downloadStep(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			action, temp := t.TempDir(), t.TempDir()
			if err := runnable.Write(filepath.Join(action, "download.sh"), []byte(read(actionFolder+"download.sh"))); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(action, "released"), []byte(tt.pins), 0o600); err != nil {
				t.Fatal(err)
			}
			if tt.base == "" {
				tt.base = server.URL + "/download"
			}
			output := filepath.Join(temp, "output")
			cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
			cmd.Env = append(os.Environ(), "VERSION="+tt.version, "SHA256="+tt.sha256, "ACTION="+action, "RELEASES="+tt.base,
				"RUNNER_TEMP="+temp, "GITHUB_OUTPUT="+output, "CURL_CA_BUNDLE="+ca)
			said, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails {
				t.Fatalf("%v\n%s", err, said)
			}
			program, ok := strings.CutPrefix(strings.TrimSpace(read(output)), "program=")
			switch {
			case !strings.HasPrefix(tt.want, "v0."):
				if ok || !strings.Contains(string(said), tt.want) {
					t.Errorf("program %q, output %s, want %s", program, said, tt.want)
				}
				if _, err := os.Stat(filepath.Join(temp, "kernelgate")); err == nil {
					t.Error("a refused program was unpacked")
				}
			default:
				if printed, err := exec.Command(program).Output(); err != nil || string(printed) != "kernelgate "+tt.want+"\n" {
					t.Errorf("the program %q printed %q, %v, want version %s\n%s", program, printed, err, tt.want, said)
				}
			}
		})
	}
}

// downloadStep is the script of the action's step.
func downloadStep(t *testing.T) string {
	t.Helper()
	for _, s := range parseAction(t).Runs.Steps {
		if s.ID == "download" {
			return s.Run
		}
	}
	t.Fatal("the action downloads nothing")
	return ""
}

// TestPinAction adds releases to the file that the action reads.
func TestPinAction(t *testing.T) {
	dir := t.TempDir()
	released, checksums := filepath.Join(dir, "released"), filepath.Join(dir, "checksums.txt")
	pin := func(version, sums string) (string, error) {
		if err := os.WriteFile(checksums, []byte(sums), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "../../.ci/pin-action", version, checksums)
		cmd.Env = append(os.Environ(), "RELEASED="+released)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if err := os.WriteFile(released, []byte("# a comment\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sums := func(version, digit string) string {
		return fmt.Sprintf("%s  kernelgate_%s_linux_amd64.deb\n%[3]s  kernelgate_%[2]s_linux_amd64.tar.gz\n%[4]s  kernelgate_%[2]s_linux_arm64.tar.gz\n",
			strings.Repeat("0", 64), version, strings.Repeat(digit, 64), strings.Repeat("f", 64))
	}
	for _, version := range []string{"0.1.0", "0.2.0"} {
		if out, err := pin("v"+version, sums(version, version[2:3])); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	want := "# a comment\nv0.2.0 linux_amd64 " + strings.Repeat("2", 64) + "\nv0.2.0 linux_arm64 " + strings.Repeat("f", 64) +
		"\nv0.1.0 linux_amd64 " + strings.Repeat("1", 64) + "\nv0.1.0 linux_arm64 " + strings.Repeat("f", 64) + "\n"
	if got := read(released); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for name, try := range map[string][2]string{"there already": {"v0.1.0", sums("0.1.0", "1")}, "no digest of kernelgate_0.3.0_linux_amd64.tar.gz": {"v0.3.0", sums("0.2.0", "1")}} {
		if out, err := pin(try[0], try[1]); err == nil || !strings.Contains(out, name) || read(released) != want {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
}
