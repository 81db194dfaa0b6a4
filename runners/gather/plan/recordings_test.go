package plan_test

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
)

const recordedText = "what a network computed"

func recordedDigest() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(recordedText))) }

// recordedFiles are a kernel whose manifest names a recording, with a policy that lists it.
func recordedFiles(file, content string) map[string]string {
	files := maps.Clone(first)
	files["k/kernel.yaml"] = manifestYAML + fmt.Sprintf("recorded: {decode: {file: %q, sha256: %s, shape: one}}\nroot: .\n", file, recordedDigest())
	files[".github/kernelgate.yaml"] = strings.Replace(policyYAML, "seeds: [0]", "seeds: [0], distributions: [normal, recorded]", 1)
	files["scale.c"] = "// base\n"
	if content != "" {
		files["k/"+file] = content
	}
	return files
}

// has reports which of a job's folders have a file with a text.
func has(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(content), text) {
			found = append(found, name)
		}
		return err
	})
	if err != nil && dir != "" {
		t.Fatal(err)
	}
	return found
}

func checkRecorded(t *testing.T, job runners.Job) {
	t.Helper()
	if job.Unready != "" {
		t.Fatal(job.Unready)
	}
	name := filepath.Join(job.Recorded, runners.RecordingFile("decode"))
	if content, err := os.ReadFile(name); err != nil || string(content) != recordedText {
		t.Errorf("the job has %q: %v", content, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the recording may be read by others: %v %v", info.Mode(), err)
	}
	for _, dir := range []string{job.Trusted, job.Candidate.Dir, job.Baseline.Dir} {
		if found := has(t, dir, recordedText); len(found) > 0 {
			t.Errorf("a build gets the recording: %v", found)
		}
	}
}

func TestRecordingOfTheRepository(t *testing.T) {
	r := newTree(t)
	base := r.commit(recordedFiles("inputs/decode.safetensors", recordedText))
	head := r.commit(map[string]string{"scale.c": "// faster\n"})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil {
		t.Fatal(err)
	}
	checkRecorded(t, job)
	if len(job.Candidate.Differs) > 0 {
		t.Errorf("the candidate differs from a checkout: %v", job.Candidate.Differs)
	}
	// The head cannot exchange it: base and digest decide.
	head = r.commit(map[string]string{"k/inputs/decode.safetensors": "easy inputs", "scale.c": "// faster yet\n"})
	if job, err = r.job(plan.Options{Base: base, Head: head}); err != nil {
		t.Fatal(err)
	}
	checkRecorded(t, job)
	// A digest that is not the file's is told.
	files := recordedFiles("inputs/decode.safetensors", recordedText+"!")
	base = r.commit(files)
	head = r.commit(map[string]string{"scale.c": "// other\n"})
	if job, err = r.job(plan.Options{Base: base, Head: head}); err != nil || !strings.Contains(job.Unready, "k/kernel.yaml: the recording decode (inputs/decode.safetensors): it has the SHA-256 ") {
		t.Errorf("another file: %q, %v", job.Unready, err)
	}
	// A policy that does not list recordings gets none.
	base = r.commit(map[string]string{".github/kernelgate.yaml": policyYAML, "k/inputs/decode.safetensors": recordedText})
	head = r.commit(map[string]string{"scale.c": "// again\n"})
	if job, err = r.job(plan.Options{Base: base, Head: head}); err != nil || job.Recorded != "" || job.Unready != "" {
		t.Errorf("a recording that nobody asked for: %q, %v", job.Recorded, err)
	}
	base = r.commit(map[string]string{".github/kernelgate.yaml": strings.Replace(policyYAML, "seeds: [0]", "seeds: [0], distributions: [normal, recorded:prefill]", 1)})
	head = r.commit(map[string]string{"scale.c": "// and again\n"})
	if _, err = r.job(plan.Options{Base: base, Head: head}); err == nil || !strings.Contains(err.Error(), `scale has no recording "prefill" (it has decode; recorded means all that a kernel has)`) {
		t.Errorf("a recording that the kernel does not have: %v", err)
	}
}

func TestRecordingInGitLFS(t *testing.T) {
	r := newTree(t)
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", recordedDigest(), len(recordedText))
	base := r.commit(recordedFiles("decode.safetensors", pointer))
	head := r.commit(map[string]string{"scale.c": "// faster\n"})
	job, err := r.job(plan.Options{Base: base, Head: head})
	if err != nil || !strings.Contains(job.Unready, "Git LFS has not fetched it here (in a checkout: git lfs fetch;") {
		t.Fatalf("without the object: %q, %v", job.Unready, err)
	}
	d := recordedDigest()
	r.write(".git/lfs/objects/"+d[:2]+"/"+d[2:4]+"/"+d, recordedText)
	if job, err = r.job(plan.Options{Base: base, Head: head}); err != nil {
		t.Fatal(err)
	}
	checkRecorded(t, job)
	base = r.commit(map[string]string{"k/decode.safetensors": strings.Replace(pointer, d[:4], "0000", 1)})
	head = r.commit(map[string]string{"scale.c": "// other\n"})
	if job, err = r.job(plan.Options{Base: base, Head: head}); err != nil || !strings.Contains(job.Unready, "its Git LFS pointer is to 0000") {
		t.Errorf("a pointer to a different file: %q, %v", job.Unready, err)
	}
}

func TestRecordingAtAnAddress(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; w.Write([]byte(recordedText)) }))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	fetcher := &recordings.Fetcher{Cache: t.TempDir(), Roots: roots, Allow: func(ip netip.Addr) bool { return ip.IsLoopback() }}
	r := newTree(t)
	empty := r.commit(map[string]string{".github/kernelgate.yaml": recordedFiles("", "")[".github/kernelgate.yaml"]})
	base := r.commit(recordedFiles(server.URL+"/decode", ""))
	// A new kernel's author does not choose what this host connects to.
	job, err := r.job(plan.Options{Base: empty, Head: base, Fetcher: fetcher})
	if err != nil || asked != 0 || !strings.Contains(job.Unready, "is fetched from its address once its manifest is on the base branch") {
		t.Errorf("a new kernel: %q, %v; the server was asked %d times", job.Unready, err, asked)
	}
	// Nor does a change that edits the manifest.
	head := r.commit(map[string]string{"k/kernel.yaml": strings.Replace(recordedFiles(server.URL+"/decode", "")["k/kernel.yaml"], "/decode", "/other", 1), "scale.c": "// faster\n"})
	if job, err = r.job(plan.Options{Base: base, Head: head, Fetcher: fetcher}); err != nil {
		t.Fatal(err)
	}
	checkRecorded(t, job)
	if job, err = r.job(plan.Options{Base: base, Head: head}); err != nil || !strings.Contains(job.Unready, "this command fetches nothing") {
		t.Errorf("without a fetcher: %q, %v", job.Unready, err)
	}
}
