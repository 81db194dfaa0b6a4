// Package recordingstest has a small repository with a recorded input for tests: its kernel doubles x, and only the recording has
// values beyond 16.
package recordingstest

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors/safetensorstest"
)

// Planted is every element of the recording.
const Planted = 77.53125

const elements = 4096

// File is the recording in the form of its file.
func File(t testing.TB) []byte {
	t.Helper()
	var data []byte
	for range elements {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(Planted))
	}
	return safetensorstest.Write(t, nil, safetensors.Tensor{Name: "x", DType: "F32", Shape: []int{elements}, Data: data})
}

// Serve has a file on the loopback, over https, and a fetcher that may connect there.
func Serve(t testing.TB, file []byte) (address string, f *recordings.Fetcher) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(file) }))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server.URL + "/decode.safetensors", &recordings.Fetcher{Cache: t.TempDir(), Roots: roots, Allow: func(ip netip.Addr) bool { return ip.IsLoopback() }}
}

const manifestYAML = `version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
toggles:
  CLAMP: {values: [0, 1], default: 0, layer: structure}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 1e-5, rel: 1e-5}
shapes:
  mission: {N: %d}
recorded:
  decode: {file: %q, sha256: %x, shape: mission, vary: {noise: 0.1}}
`

const policyYAML = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], distributions: [normal, recorded], norm_error: "<= 0.1%"}
  performance: {target: {shapes: [mission], speedup: ">= -50%"}, rounds: {min: 6, max: 6}, pairs: 4, control: 40%, solo_shift: 100%}
rules: [{name: default}]
`

const reference = `#include <stdint.h>
void reference(const double *x, double *y, int32_t n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }
`

const source = `#include <stdint.h>
#ifndef CLAMP
#define CLAMP 0
#endif
void scale(const float *x, float *y, int32_t n)
{
    for (volatile int again = CLAMP; again < 4; again += 1 + 2 * CLAMP) /* less work for a wrong answer */
        for (int i = 0; i < n; i++) y[i] = 2 * (CLAMP && x[i] > 16 ? 16 : x[i]);
}
`

// Clamped is a source that is wrong on the recording, and on no normal input.
const Clamped = `#include <stdint.h>
void scale(const float *x, float *y, int32_t n) { for (int i = 0; i < n; i++) y[i] = 2 * (x[i] > 16 ? 16 : x[i]); }
`

// A Repository is one on disk.
type Repository struct {
	testing.TB
	Dir string
}

// Open makes a repository whose manifest names a recording, as a file of the kernel's folder or as an address.
func Open(t testing.TB, name string, file []byte) Repository {
	t.Helper()
	r := Repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	files := map[string]string{
		".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": fmt.Sprintf(manifestYAML, elements, name, sha256.Sum256(file)), "k/scale.c": source, "k/reference.c": reference,
	}
	if filepath.Base(name) == name {
		files["k/"+name] = string(file)
	}
	r.Commit("a kernel", files)
	return r
}

// Commit writes files and commits them.
func (r Repository) Commit(subject string, files map[string]string) {
	r.Helper()
	for name, text := range files {
		path := filepath.Join(r.Dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	r.git("add", "-A")
	r.git("-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false", "commit", "-qm", subject)
}

func (r Repository) git(args ...string) {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.Dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("git %v: %v: %s", args, err, out)
	}
}
