package bundle

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

const manifestYAML = `version: 1
name: twice
mode: command
shapes: {small: {N: 8}}
variants: {a: {}, b: {}}
default_variant: a
command: {build: [make], bench: [./bench]}
`

func policyText(t testing.TB) string {
	t.Helper()
	text, err := policies.Shipped("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func fill(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// example returns a job in separate folders.
func example(t testing.TB) runners.Job {
	t.Helper()
	base := fill(t, t.TempDir(), map[string]string{"kernel.yaml": manifestYAML, "bench": "#!/bin/sh\n", "deep/er/x.h": "// x"})
	head := fill(t, t.TempDir(), map[string]string{"kernel.yaml": manifestYAML, "bench": "#!/bin/sh\necho\n"})
	return runners.Job{
		Trusted: base, Candidate: runners.Side{Dir: head, Variant: "b"}, Baseline: &runners.Side{Dir: base, Variant: "a"},
		Change: policy.Change{Labels: []string{"perf"}, Branch: "main", Title: "Faster — much", Paths: []string{"k/twice/bench"}},
		Notes:  []string{"a note"},
		Noise:  true, Rounds: 7, Profile: true,
		Provenance: gates.Provenance{
			Time: time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC), Repository: "o/r", Base: gates.Commit{SHA: "b"}, Head: gates.Commit{SHA: "h"},
		},
		Key: "k/twice", PolicyFile: ".github/kernelgate.yaml", PolicyText: policyText(t),
		Shapes: []string{"small"}, Seeds: []int64{-1, 2},
	}
}

// own gives a side its own implementation.
func own(t testing.TB, s *runners.Side, text string) {
	t.Helper()
	m, err := manifest.Join("kernel.yaml", []byte(manifestYAML), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Manifest, s.ManifestText = m, text
}

func pack(t testing.TB, j runners.Job) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	digest, err := Write(&b, j)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), digest
}

func unpack(t testing.TB, data []byte) runners.Job {
	t.Helper()
	j, err := Read(bytes.NewReader(data), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestNamedManifest checks that in a folder with several manifests the job's own is read, whatever
// the others are.
func TestNamedManifest(t *testing.T) {
	j := example(t)
	j.Key = "k/other.kernel.yaml"
	fill(t, j.Trusted, map[string]string{"other.kernel.yaml": strings.Replace(manifestYAML, "name: ", "name: other_", 1), "kernel.yaml": "]\n"})
	data, _ := pack(t, j)
	if got := unpack(t, data); got.Key != j.Key || !strings.HasPrefix(got.Manifest.Name, "other_") || got.ManifestText == "]\n" {
		t.Errorf("%s is %s:\n%s", got.Key, got.Manifest.Name, got.ManifestText)
	}
	j.Key = "k/none.kernel.yaml"
	if _, err := Write(io.Discard, j); err == nil || !strings.Contains(err.Error(), "has no none.kernel.yaml") {
		t.Errorf("a manifest that is not there is packed: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	tests := map[string]func(*runners.Job){
		"as it is":         func(*runners.Job) {},
		"new kernel":       func(j *runners.Job) { j.Baseline = nil },
		"a probe":          func(j *runners.Job) { j.Part = runners.PartProbe },
		"compiled only":    func(j *runners.Job) { j.Part = runners.PartStatic },
		"only explained":   func(j *runners.Job) { j.Part, j.Shapes = runners.PartExplain, []string{"small"} },
		"variants":         func(j *runners.Job) { j.Candidate.Dir = j.Trusted },
		"another baseline": func(j *runners.Job) { j.Baseline.Dir = fill(t, t.TempDir(), map[string]string{"bench": "old"}) },
		"implementations of their own": func(j *runners.Job) {
			own(t, &j.Candidate, strings.Replace(manifestYAML, "b: {}", "b: {}, c: {toggles: {T: 2}}", 1)+"toggles: {T: {values: [1, 2], default: 1, layer: micro}}\n")
			own(t, j.Baseline, strings.Replace(manifestYAML, "a: {}", "a: {lesson: none}", 1))
			j.Candidate.Variant = "c"
		},
		"recordings": func(j *runners.Job) {
			j.Recorded = fill(t, t.TempDir(), map[string]string{"decode.safetensors": "recorded"})
		},
		"pinned compilers": func(j *runners.Job) {
			j.Candidate.Toolchains.Triton = &policy.Toolchain{Version: "3.9.0", Digest: "sha256:" + strings.Repeat("0", 64)}
			j.Baseline.Toolchains.NVCC = &policy.Toolchain{Version: "13.0.88"}
		},
		"tune": func(j *runners.Job) {
			j.Search = &runners.Search{Tune: &runners.TuneSearch{Shapes: []string{"small"}, Proposer: "local", Candidates: 20, Seconds: 600}}
		},
		"bisect": func(j *runners.Job) {
			changed := runners.Side{Dir: fill(t, t.TempDir(), map[string]string{"bench": "#!/bin/sh\nexit\n"}), Variant: "a"}
			own(t, &changed, strings.Replace(manifestYAML, "a: {}", "a: {lesson: none}", 1))
			j.Search = &runners.Search{Bisect: &runners.BisectSearch{
				Good: "v1", GoodSHA: "b", Rounds: 9, Sides: []runners.Side{{Dir: j.Trusted, Variant: "a"}, changed},
				Commits: []runners.BisectCommit{{SHA: "c", Subject: "Tidy", Side: 0}, {SHA: "d", Skip: "it has no kernel"}, {SHA: "h", Subject: "Exit", Side: 1}},
			}}
		},
		"plain": func(j *runners.Job) {
			j.Rounds, j.Shapes, j.Seeds, j.Profile = 0, nil, nil, false
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			j := example(t)
			change(&j)
			data, digest := pack(t, j)
			got := unpack(t, data)
			if again, same := pack(t, got); same != digest || !bytes.Equal(again, data) {
				t.Error("packed again it is another bundle")
			}
			if got.Manifest == nil || got.Manifest.Name != "twice" || got.Policy == nil || len(got.Policy.Rules) == 0 {
				t.Errorf("manifest %v, policy %v", got.Manifest, got.Policy)
			}
			if got.ManifestText != manifestYAML {
				t.Errorf("manifest's text %q", got.ManifestText)
			}
			want := j
			want.Manifest, want.Policy, want.ManifestText = got.Manifest, got.Policy, manifestYAML
			sides := func(j runners.Job) (dirs []map[string]string) {
				dirs = append(dirs, contents(t, j.Trusted), contents(t, j.Candidate.Dir))
				if j.Baseline != nil {
					dirs = append(dirs, contents(t, j.Baseline.Dir))
				}
				if j.Search != nil && j.Search.Bisect != nil {
					for _, s := range j.Search.Bisect.Sides {
						dirs = append(dirs, contents(t, s.Dir))
					}
				}
				if j.Recorded != "" {
					dirs = append(dirs, contents(t, j.Recorded))
				}
				return dirs
			}
			if diff := cmp.Diff(sides(want), sides(got)); diff != "" {
				t.Error("files:", diff)
			}
			for _, j := range []*runners.Job{&want, &got} { // their folders always differ
				j.Trusted, j.Candidate.Dir, j.Recorded = "", "", ""
				if j.Candidate.Manifest != nil && j.Candidate.Manifest.ToggleValues("c")["T"] != 2 {
					t.Error("the candidate's manifest is another")
				}
				j.Candidate.Manifest = nil
				if j.Baseline != nil {
					j.Baseline = &runners.Side{Variant: j.Baseline.Variant, ManifestText: j.Baseline.ManifestText, Toolchains: j.Baseline.Toolchains}
				}
				if j.Search != nil && j.Search.Bisect != nil {
					for i, s := range j.Search.Bisect.Sides {
						j.Search.Bisect.Sides[i] = runners.Side{Variant: s.Variant, ManifestText: s.ManifestText}
					}
				}
				j.Manifest, j.Policy = nil, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// contents returns a folder's files; a ! marks those that are executable.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if info.Mode()&0o100 != 0 {
			rel += "!"
		}
		all[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDigestIsOfTheContent checks on random folders that equal content has an equal digest, that
// different content has a different one, and that times and permissions do not count.
func TestDigestIsOfTheContent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]string{}
	for range 30 {
		files := map[string]string{"kernel.yaml": manifestYAML}
		for i := range rng.IntN(12) {
			name := fmt.Sprintf("%s%d-ü %c", strings.Repeat("d/", rng.IntN(4)), i, 'a'+rune(rng.IntN(26)))
			if rng.IntN(5) == 0 {
				name += strings.Repeat("long", 40) // more than a plain header holds
			}
			data := make([]byte, rng.IntN(5000))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			files[name] = string(data)
		}
		j := example(t)
		j.Trusted = fill(t, t.TempDir(), files)
		j.Baseline.Dir = j.Trusted
		data, digest := pack(t, j)

		k := j
		k.Trusted = fill(t, t.TempDir(), files)
		side := *j.Baseline
		side.Dir = k.Trusted
		k.Baseline = &side
		for name := range files {
			if err := os.Chtimes(filepath.Join(k.Trusted, name), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(k.Trusted, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, same := pack(t, k); same != digest {
			t.Fatal("equal content has two digests")
		}
		if _, same := pack(t, unpack(t, data)); same != digest {
			t.Fatal("unpacked and packed again it has another digest")
		}
		text := fmt.Sprint(files)
		if other, ok := seen[digest]; ok && other != text {
			t.Fatal("other content has the same digest")
		}
		seen[digest] = text
	}
}

// TestEverybodyMayRead checks the permissions: a sandbox's programs run as a different user than
// the runner.
func TestEverybodyMayRead(t *testing.T) {
	data, _ := pack(t, example(t))
	dir := t.TempDir()
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	if _, err := Read(bytes.NewReader(data), dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{
		"base": 0o755, "base/bench": 0o755, "base/deep": 0o755, "base/deep/er": 0o755, "base/deep/er/x.h": 0o644, "base/kernel.yaml": 0o644,
	}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), mode)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, j *runners.Job)
		says   string
	}{
		{"no manifest", func(t *testing.T, j *runners.Job) { os.Remove(filepath.Join(j.Trusted, "kernel.yaml")) }, "has no kernel.yaml"},
		{"no folder", func(t *testing.T, j *runners.Job) { j.Candidate.Dir = "/does/not/exist" }, "no such file"},
		{"a link", func(t *testing.T, j *runners.Job) {
			if err := os.Symlink("/etc/passwd", filepath.Join(j.Trusted, "link")); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"an odd name", func(t *testing.T, j *runners.Job) { fill(t, j.Trusted, map[string]string{"a\nb": ""}) }, "not a plain relative path"},
		{"a huge file", func(t *testing.T, j *runners.Job) {
			fill(t, j.Trusted, map[string]string{"huge": ""})
			if err := os.Truncate(filepath.Join(j.Trusted, "huge"), maxBytes); err != nil {
				t.Fatal(err)
			}
		}, "keep large or generated files out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := example(t)
			tt.change(t, &j)
			if _, err := Write(&bytes.Buffer{}, j); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}

func TestQuota(t *testing.T) {
	for name, q := range map[string]quota{"files": {files: maxFiles}, "bytes": {bytes: maxBytes - 9}, "overflow": {bytes: 1 << 62}} {
		t.Run(name, func(t *testing.T) {
			if err := q.take("x", 10); err == nil || !strings.Contains(err.Error(), "more than a bundle may hold") {
				t.Error(err)
			}
		})
	}
	q := quota{files: maxFiles - 1, bytes: maxBytes - 10}
	if err := q.take("x", 10); err != nil {
		t.Error(err)
	}
}
