package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners"
)

// A file is a file of a bundle that was tampered with.
type file struct {
	header  tar.Header
	content string
}

func open(t testing.TB, data []byte) []file {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(zip)
	var files []file
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{*h, string(content)})
	}
}

func shut(t testing.TB, files []file) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for _, f := range files {
		if f.header.Typeflag == tar.TypeReg {
			f.header.Size = int64(len(f.content))
		}
		if err := archive.WriteHeader(&f.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func regular(name, content string) file {
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, content}
}

func link(kind byte, name, to string) file {
	return file{tar.Header{Typeflag: kind, Name: name, Linkname: to}, ""}
}

func TestReadRefuses(t *testing.T) {
	data, _ := pack(t, example(t))
	with := func(more ...file) func([]file) []file {
		return func(files []file) []file {
			all := append(files, more...)
			slices.SortStableFunc(all, func(a, b file) int { return strings.Compare(a.header.Name, b.header.Name) })
			return all
		}
	}
	without := func(prefix string) func([]file) []file {
		return func(files []file) []file {
			return slices.DeleteFunc(files, func(f file) bool { return strings.HasPrefix(f.header.Name, prefix) })
		}
	}
	edit := func(name, old, new string) func([]file) []file {
		return func(files []file) []file {
			i := slices.IndexFunc(files, func(f file) bool { return f.header.Name == name })
			if !strings.Contains(files[i].content, old) {
				t.Fatalf("%s has no %q", name, old)
			}
			files[i].content = strings.Replace(files[i].content, old, new, 1)
			return files
		}
	}
	tests := []struct {
		name   string
		change func([]file) []file
		says   string
	}{
		{"a manifest that nobody names", with(regular("head.yaml", manifestYAML)), "head.yaml, which job.json does not name"},
		{"a manifest that is not there", edit("job.json", `"variant": "b"`, `"variant": "b", "manifest": "head.yaml"`), "head.yaml is missing"},
		{"the other side's manifest", edit("job.json", `"variant": "b"`, `"variant": "b", "manifest": "baseline.yaml"`), `the candidate's manifest "baseline.yaml" is not head.yaml`},
		{"the base's as a side's", edit("job.json", `"variant": "b"`, `"variant": "b", "manifest": "base/kernel.yaml"`), "is not head.yaml"},
		{"a manifest of rubbish", func(f []file) []file {
			return with(regular("head.yaml", "]\n"))(edit("job.json", `"variant": "b"`, `"variant": "b", "manifest": "head.yaml"`)(f))
		}, "head.yaml: k/twice/kernel.yaml:1"},
		{"a manifest without the variant", func(f []file) []file {
			return with(regular("head.yaml", strings.Replace(manifestYAML, ", b: {}", "", 1)))(edit("job.json", `"variant": "b"`, `"variant": "b", "manifest": "head.yaml"`)(f))
		}, `has no variant "b"`},
		{"another manifest of the folder", edit("job.json", `"folder": "k/twice"`, `"folder": "k/other.kernel.yaml"`), "base/other.kernel.yaml is missing"},
		{"a kernel outside", edit("job.json", `"folder": "k/twice"`, `"folder": "../twice"`), "not a plain relative path"},
		{"an absolute path", with(regular("/etc/passwd", "x")), "not a plain relative path"},
		{"a way out", with(regular("base/../../x", "x")), "not a plain relative path"},
		{"a way out from the top", with(regular("../x", "x")), "not a plain relative path"},
		{"a dot", with(regular("base/./x", "x")), "not a plain relative path"},
		{"a backslash", with(regular(`base/..\x`, "x")), "not a plain relative path"},
		{"a symbolic link", with(link(tar.TypeSymlink, "base/l", "/etc")), "not a regular file"},
		{"a hard link", with(link(tar.TypeLink, "base/l", "base/bench")), "not a regular file"},
		{"a device", with(link(tar.TypeChar, "base/null", "")), "not a regular file"},
		{"a folder", with(link(tar.TypeDir, "base/d", "")), "not a regular file"},
		{"a name twice", with(regular("base/bench", "x")), "holds each name once"},
		{"out of order", func(f []file) []file { slices.Reverse(f); return f }, "sorted"},
		{"a file and a folder of one name", with(regular("base/bench/x", "x")), "base/bench"},
		{"a file at the top", with(regular("more.json", "{}")), "no bundle has such a file"},
		{"a folder at the top", with(regular("more/x", "{}")), "no bundle has such a folder"},
		{"an attribute", with(file{tar.Header{Typeflag: tar.TypeReg, Name: "base/a", PAXRecords: map[string]string{"VENDOR.x": "1"}}, ""}), "attribute"},
		{"no job", without(jobFile), "job.json"},
		{"no policy", without(policyFile), "policy.yaml is missing"},
		{"no base", without("base/"), "folder base is missing"},
		{"no head", without("head/"), "folder head is missing"},
		{"a folder too many", with(regular("baseline/x", "x")), "does not name"},
		{"a file of another version", with(regular("evidence.json", "{}")), "no bundle has such a file"},
		{"no manifest", without("base/kernel.yaml"), "kernel.yaml"},
		{"another schema", edit(jobFile, schema, "kernelgate/bundle/v9"), "same version"},
		{"an unknown field", edit(jobFile, `"rounds"`, `"runds"`), "unknown field"},
		{"two jobs", edit(jobFile, "\n}", "\n}{}"), "goes on after its end"},
		{"a compiler that cannot be", edit(jobFile, `"variant": "b"`, `"variant": "b", "toolchains": {"nvcc": {"version": "../bin"}}`), "the pin of nvcc is no version with a digest"},
		{"negative rounds", edit(jobFile, `"rounds": 7`, `"rounds": -7`), "rounds is -7"},
		{"another folder", edit(jobFile, `"folder": "head"`, `"folder": "../head"`), "neither base nor head"},
		{"an unknown variant", edit(jobFile, `"variant": "b"`, `"variant": "z"`), `no variant "z" (it has a, b)`},
		{"a broken manifest", edit("base/kernel.yaml", "mode: command", "mood: command"), "k/twice/kernel.yaml"},
		{"a broken policy", edit(policyFile, "rules:", "rulez:"), ".github/kernelgate.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			outside := t.TempDir()
			dir := filepath.Join(outside, "dir")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := Read(bytes.NewReader(shut(t, tt.change(open(t, data)))), dir)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			if files := contents(t, outside); slices.ContainsFunc(keys(files), func(name string) bool { return !strings.HasPrefix(name, "dir/") }) {
				t.Errorf("files outside: %v", keys(files))
			}
		})
	}
}

func keys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

// TestReadIsBounded checks that a small file that claims to be a huge one is refused.
func TestReadIsBounded(t *testing.T) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "base/zeros", Size: maxBytes + 1}); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Read(&b, dir); err == nil || !strings.Contains(err.Error(), "more than a bundle may hold") {
		t.Error(err)
	}
	if files := contents(t, dir); len(files) != 0 {
		t.Errorf("it began to unpack %v", keys(files))
	}
}

func FuzzRead(f *testing.F) {
	for _, change := range []func(*runners.Job){func(*runners.Job) {}, func(j *runners.Job) { j.Baseline = nil }, func(j *runners.Job) { j.Candidate.Dir = j.Trusted }} {
		j := example(f)
		change(&j)
		data, _ := pack(f, j)
		zip, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			f.Fatal(err)
		}
		plain, err := io.ReadAll(zip)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain)
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		zip.Write(plain)
		zip.Close()
		outside := t.TempDir()
		dir := filepath.Join(outside, "dir")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		j, err := Read(&packed, dir)
		if entries, _ := os.ReadDir(outside); len(entries) != 1 {
			t.Fatal("something was written outside")
		}
		if err != nil {
			return
		}
		data, digest := pack(t, j)
		if _, again := pack(t, unpack(t, data)); again != digest {
			t.Error("what was read is not what is written")
		}
	})
}

// TestPeek checks that Peek reads the description without unpacking, and is as strict as Read.
func TestPeek(t *testing.T) {
	data, _ := pack(t, example(t))
	want := unpack(t, data)
	got, err := Peek(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got.Trusted != "" || got.Candidate.Dir != "" || (got.Baseline == nil) != (want.Baseline == nil) {
		t.Errorf("the job has folders: %+v", got)
	}
	want.Trusted, want.Candidate.Dir = "", ""
	if want.Baseline != nil {
		want.Baseline.Dir = ""
	}
	if a, b := fmt.Sprintf("%+v", got.Provenance), fmt.Sprintf("%+v", want.Provenance); a != b || got.ManifestText != want.ManifestText || got.PolicyText != want.PolicyText || !reflect.DeepEqual(got.Candidate, want.Candidate) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := Peek(bytes.NewReader(data[:len(data)/2])); err == nil {
		t.Error("half a bundle was looked into")
	}
	files := open(t, data)
	if _, err := Peek(bytes.NewReader(shut(t, append(files, regular("zz", "x"))))); err == nil || !strings.Contains(err.Error(), "no bundle has such a file") {
		t.Errorf("a file that no bundle has: %v", err)
	}
}
