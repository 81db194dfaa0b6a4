package plan_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// TestLostObjects checks that a repository that has lost an object yields an error, or the plan
// that does not need the object. It never yields a different plan, and never blames the author.
func TestLostObjects(t *testing.T) {
	for name, setup := range map[string]func(*testing.T, *tree) (opt plan.Options, named string){
		"a change of the manifest on an old base": oldBase,
		"sources elsewhere":                       sourcesElsewhere,
		"kernels that share a folder":             sharedFolder,
		"the best":                                bestBaseline,
		"another revision":                        anotherRevision,
		"two variants":                            twoVariants,
		"two compilers":                           twoCompilers,
		"the work tree":                           workTree,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTree(t)
			opt, named := setup(t, r)
			kernelsWanted, jobWanted, err := r.whole(opt)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range r.objects() {
				if named != "" && strings.HasSuffix(object, named[2:]) {
					continue // a named commit may be missing, and the plan says so
				}
				hidden := object + ".lost"
				if err := os.Rename(object, hidden); err != nil {
					t.Fatal(err)
				}
				kernels, job, err := r.whole(opt)
				if _, mistake := errors.AsType[usage.Error](err); mistake {
					t.Errorf("without %s the author is told: %v", filepath.Base(object), err)
				}
				if kernels != "" && kernels != kernelsWanted {
					t.Errorf("without %s the kernels are\n%s\nwant\n%s", filepath.Base(object), kernels, kernelsWanted)
				}
				if job != "" && job != jobWanted {
					t.Errorf("without %s the job is\n%s\nwant\n%s", filepath.Base(object), job, jobWanted)
				}
				if err := os.Rename(hidden, object); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// objects lists the files of git's loose objects.
func (r *tree) objects() []string {
	r.Helper()
	var all []string
	err := filepath.WalkDir(filepath.Join(r.dir, ".git", "objects"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// whole describes the kernels of a plan and, from a second plan that has read nothing yet, the job
// of the kernel in the folder k. Each is empty if it failed.
func (r *tree) whole(opt plan.Options) (kernels, job string, err error) {
	r.Helper()
	fresh := func() (*plan.Plan, error) {
		opt.Repo, opt.Scratch = checkout.OpenBare(filepath.Join(r.dir, ".git")), r.TempDir()
		if opt.Head == "" {
			var err error
			if opt.Repo, err = checkout.Open(r.Context(), r.dir); err != nil {
				return nil, err
			}
		}
		return plan.New(r.Context(), opt)
	}
	var keys []string
	first, errKernels := fresh()
	if errKernels == nil {
		if keys, errKernels = first.Kernels(r.Context()); errKernels == nil {
			kernels = fmt.Sprint(keys, slices.Contains(keys, "k") && first.Touches("k", first.Changed()))
		}
	}
	second, errJob := fresh()
	if errJob == nil {
		var j runners.Job
		if j, errJob = second.Job(r.Context(), "k"); errJob == nil {
			job = r.describe(j)
		}
	}
	return kernels, job, errors.Join(errKernels, errJob)
}

// describe writes out a job and the contents of its folders. The folders themselves have different
// names in every plan.
func (r *tree) describe(j runners.Job) string {
	r.Helper()
	j.Provenance.Head.Branch = "" // omitted if git does not report it
	text := fmt.Sprint(j.Key, j.Notes, j.Broken, j.Removed, j.Unready, j.Noise, j.PolicyFile, j.PolicyText, j.ManifestText, j.Provenance)
	sides := []runners.Side{j.Candidate}
	if j.Baseline != nil {
		sides = append(sides, *j.Baseline)
	}
	for _, s := range sides {
		text += fmt.Sprintf("\n%s %s %q %v", s.Variant, s.Toolchains, s.ManifestText, contents(r.T, s.Dir))
	}
	return text + fmt.Sprint(contents(r.T, j.Trusted))
}

// with returns the usual files and some others.
func with(more map[string]string) map[string]string {
	files := map[string]string{}
	for _, from := range []map[string]string{first, more} {
		for name, text := range from {
			files[name] = text
		}
	}
	return files
}

// oldBase returns a head that edits its manifest and the policy's compiler, on a base from which
// the base branch has moved on.
func oldBase(t *testing.T, r *tree) (plan.Options, string) {
	pinned := func(version string) string { return "toolchains: {nvcc: {version: " + version + "}}\n" + policyYAML }
	base := r.commit(with(map[string]string{".github/kernelgate.yaml": pinned("13.0.88"), "k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: scale.c\nflags: [-O1]")}))
	tip := r.commit(map[string]string{".github/kernelgate.yaml": pinned("13.0.88") + "# tip\n", "k/helper.h": "// tip\n", "k/reference.c": "// tip\n", "new/kernel.yaml": manifestYAML, "new/reference.c": "// new\n"})
	r.git("checkout", "--quiet", base)
	head := r.commit(map[string]string{".github/kernelgate.yaml": pinned("12.9.86"), "k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: scale.c\nflags: [-O3]"), "k/scale.c": "#include \"own.h\"\n", "k/own.h": "// own\n", "new/scale.c": "// new\n"})
	return plan.Options{Base: base, Head: head, Trusted: tip}, ""
}

func sourcesElsewhere(t *testing.T, r *tree) (plan.Options, string) {
	text := edited(t, manifestYAML, "source: scale.c", "root: csrc\nsource: scale.c\ninclude: [common/deep]")
	base := r.commit(with(map[string]string{"k/kernel.yaml": text, "csrc/scale.c": "#include <a.h>\n", "common/deep/a.h": "// a\n"}))
	head := r.commit(map[string]string{"common/deep/a.h": "// b\n"})
	return plan.Options{Base: base, Head: head}, ""
}

func sharedFolder(t *testing.T, r *tree) (plan.Options, string) {
	base := r.commit(with(map[string]string{
		"k/scale.c": "#include \"a.h\"\n", "k/a.h": "#include \"b.h\"\n", "k/b.h": "// b\n", "k/other.c": "#include \"b.h\"\n",
		"k/other.kernel.yaml": edited(t, manifestYAML, "name: scale", "name: other", "source: scale.c", "source: other.c"),
	}))
	head := r.commit(map[string]string{"k/b.h": "// faster\n", "k/table.inc": "// t\n", "k/reference.c": "// edited\n"})
	return plan.Options{Base: base, Head: head}, ""
}

func bestBaseline(t *testing.T, r *tree) (plan.Options, string) {
	fast := r.commit(with(map[string]string{
		"k/scale.c":               "// fast\n",
		".github/kernelgate.yaml": edited(t, policyYAML, "rules:", "  performance: {target: {shapes: all, speedup: \">= +10%\"}, baseline: best}\nrules:"),
	}))
	base := r.commit(map[string]string{"k/scale.c": "// slow\n", "k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: scale.c\nflags: [-O3]")})
	return plan.Options{Base: base, Head: r.commit(map[string]string{"k/scale.c": "// head\n"}), Faster: faster(plan.Faster{Commit: fast, Key: "k", On: "L4"})}, fast
}

func anotherRevision(t *testing.T, r *tree) (plan.Options, string) {
	other := r.commit(with(map[string]string{"k/scale.c": "// other\n"}))
	base := r.commit(map[string]string{"k/scale.c": "// base\n", "k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: scale.c\nflags: [-O3]")})
	return plan.Options{Base: base, Head: r.commit(map[string]string{"k/scale.c": "// head\n"}), Versus: other, Kernels: []string{"scale"}}, other
}

func twoVariants(t *testing.T, r *tree) (plan.Options, string) {
	at := r.commit(with(map[string]string{"k/kernel.yaml": edited(t, staged, "entry: scale", "entry: scale\ninclude: [common]"), "k/stage0.c": "// 0\n", "k/stage1.c": "// 1\n", "common/a.h": "// a\n"}))
	return plan.Options{Base: at, Head: at, Variant: "stage1", BaselineVariant: "stage0"}, ""
}

func twoCompilers(t *testing.T, r *tree) (plan.Options, string) {
	files := compiled("toolchains: {triton: {version: 3.6.0}}\n")
	for _, name := range []string{"kernel.yaml", "kernel.py", "reference.cu"} {
		files["k/"+name] = files["py/"+name]
	}
	at := r.commit(files)
	return plan.Options{Base: at, Head: at, After: policy.Toolchains{Triton: &policy.Toolchain{Version: "3.9.0"}}}, ""
}

func workTree(t *testing.T, r *tree) (plan.Options, string) {
	base := r.commit(with(map[string]string{"common/a.h": "// a\n", "k/scale.c": "#include <a.h>\n", "k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: scale.c\ninclude: [common]")}))
	r.write("common/a.h", "// changed\n")
	r.write("k/kernel.yaml", edited(t, manifestYAML, "source: scale.c", "source: scale.c\ninclude: [common]\nflags: [-O3]"))
	return plan.Options{Base: base}, ""
}

// faster returns a history of merges with these states, fastest first.
func faster(states ...plan.Faster) func(context.Context, runners.Job) ([]plan.Faster, error) {
	return func(context.Context, runners.Job) ([]plan.Faster, error) { return states, nil }
}
