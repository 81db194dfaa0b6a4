package plan_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// apart is a kernel whose manifest lies apart from its sources.
func apart(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		".github/kernelgate.yaml": policyYAML, "README.md": "Kernels.\n", "src/scale.c": "// base\n", "gate/k/reference.c": "// truth\n",
		"gate/k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "root: src\nsource: scale.c"),
	}
}

// inUTF16 returns a text as some editors save it.
func inUTF16(text string) string {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune("\ufeff" + text)) {
		b.Write([]byte{byte(c), byte(c >> 8)})
	}
	return b.String()
}

// TestNoKernelChangedIsNoGuess checks that a change is refused while the base has a manifest or a
// policy that cannot be read: nobody knows which files such a kernel is built from. It makes no
// difference where the manifest lies and which file the change edits.
func TestNoKernelChangedIsNoGuess(t *testing.T) {
	const file, policyFile = "gate/k/kernel.yaml", ".github/kernelgate.yaml"
	good := apart(t)[file]
	for name, c := range map[string]struct {
		base map[string]string // over the good files
		link string            // a file that is a link
		says string
	}{
		"a misspelled field":       {base: map[string]string{file: edited(t, good, "tolerance:", "tolerence:")}, says: file + ":11:1: tolerence: unknown field"},
		"no YAML":                  {base: map[string]string{file: "]\n"}, says: file + ":1:1: is not valid YAML"},
		"an empty file":            {base: map[string]string{file: "\n"}, says: file + ": is empty"},
		"UTF-16":                   {base: map[string]string{file: inUTF16(good)}, says: file + ":1:1: is not UTF-8 text"},
		"too long":                 {base: map[string]string{file: good + strings.Repeat("# x\n", 1<<18)}, says: file + ": is 1048"},
		"a link":                   {base: map[string]string{"gate/k/real.yaml": good}, link: file, says: file + ":1:1: it is a link or a submodule"},
		"another kernel's":         {base: map[string]string{"other/kernel.yaml": "name: x\n"}, says: "other/kernel.yaml:"},
		"one of two in a folder":   {base: map[string]string{"gate/k/twice.kernel.yaml": "]\n"}, says: "gate/k/twice.kernel.yaml:1:1: is not valid YAML"},
		"the policy":               {base: map[string]string{policyFile: edited(t, policyYAML, "gates:", "gaets:")}, says: policyFile + ":2:1: gaets: unknown field"},
		"the policy is a link":     {base: map[string]string{".github/real.yaml": policyYAML}, link: policyFile, says: policyFile + ":1:1: it is a link or a submodule"},
		"the policy's name":        {base: map[string]string{policyFile: "", ".github/kernelgate.yml": policyYAML}, says: ".github/kernelgate.yml:1:1: this file is not read: the policy is " + policyFile},
		"the policy's other name":  {base: map[string]string{policyFile: "", ".github/KernelGate.yaml": policyYAML}, says: ".github/KernelGate.yaml:1:1: this file is not read"},
		"a manifest in the top":    {base: map[string]string{"kernel.yaml": manifestYAML, "scale.c": "// s\n"}, says: "kernel.yaml: a manifest in the repository's top folder"},
		"a manifest's other name":  {base: map[string]string{"other/Kernel.yml": manifestYAML}, says: "other/Kernel.yml:1:1: a manifest of this name gates no kernel"},
		"two manifests at a time":  {base: map[string]string{file: "]\n", "other/kernel.yaml": "]\n"}, says: file + ":1:1: is not valid YAML"},
		"and the second is listed": {base: map[string]string{file: "]\n", "other/kernel.yaml": "]\n"}, says: "other/kernel.yaml:1:1: is not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTree(t)
			files := apart(t)
			for name, text := range c.base {
				if files[name] = text; text == "" {
					delete(files, name)
				}
			}
			if c.link != "" {
				delete(files, c.link)
				if err := errors.Join(os.MkdirAll(filepath.Join(r.dir, filepath.Dir(c.link)), 0o755), os.Symlink("real.yaml", filepath.Join(r.dir, c.link))); err != nil {
					t.Fatal(err)
				}
			}
			base := r.commit(files)
			for _, edit := range []string{"src/scale.c", "README.md", "src/new.h"} {
				head := r.commit(map[string]string{edit: "// head\n"})
				for _, opt := range []plan.Options{{Base: base, Head: head}, {Base: base, Head: ""}, {Base: base, Head: head, Repairs: true}} {
					keys, err := r.plan(opt).Kernels(t.Context())
					wantMistake(t, err, c.says)
					if len(keys) > 0 {
						t.Errorf("the kernels are %v", keys)
					}
				}
				r.git("checkout", "--quiet", base)
			}
		})
	}
}

// TestMistakesSinceTheBranch checks that the manifests of the base branch count as they are now: a
// mistake that it made since concerns a branch without it, and one that it has fixed since does
// not, whose sources are found by the fixed manifest.
func TestMistakesSinceTheBranch(t *testing.T) {
	const file = "gate/k/kernel.yaml"
	good := apart(t)[file]
	bad := edited(t, good, "tolerance:", "tolerence:")
	for name, c := range map[string]struct {
		base, trusted string
		edit          string
		want, says    string
	}{
		"made since":                   {good, bad, "README.md", "", file + ":11:1: tolerence: unknown field"},
		"fixed since":                  {bad, good, "src/scale.c", "gate/k", ""},
		"fixed since, new header":      {bad, edited(t, good, "root: src", "root: src\ninclude: [common]"), "src/scale.c", "gate/k", ""},
		"fixed since, documents":       {bad, good, "README.md", "", ""},
		"the sources have moved since": {good, edited(t, good, "root: src", "root: later"), "later/scale.c", "gate/k", ""},
		"the manifest is gone since":   {good, "", "src/scale.c", "gate/k", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTree(t)
			files := apart(t)
			files[file], files["later/scale.c"], files["common/a.h"] = c.base, "// later\n", "// a\n"
			base := r.commit(files)
			head := r.commit(map[string]string{c.edit: "// head\n"})
			r.git("checkout", "--quiet", base)
			trusted := r.commit(map[string]string{file: c.trusted})
			keys, err := r.plan(plan.Options{Base: base, Trusted: trusted, Head: head}).Kernels(t.Context())
			if c.says != "" {
				wantMistake(t, err, c.says)
				return
			}
			if err != nil || strings.Join(keys, " ") != c.want {
				t.Errorf("the kernels are %v (%v), want %q", keys, err, c.want)
			}
		})
	}
}

// TestRepairedManifest checks who may judge a change that repairs a manifest of the base: a bot,
// which has somebody approve it, by the repaired manifest; nobody else.
func TestRepairedManifest(t *testing.T) {
	const file, hint = "gate/k/kernel.yaml", "The change repairs this, and the base's manifest holds until it is merged"
	good := apart(t)[file]
	bad := edited(t, good, "tolerance:", "tolerence:")
	for name, c := range map[string]struct {
		trusted string // "" is the base's
		edit    map[string]string
		says    string // for a bot; "" means that the kernel is planned
		repairs bool
	}{
		"a repair":                     {"", map[string]string{file: good, "src/scale.c": "// faster\n"}, "", true},
		"a repair with other includes": {"", map[string]string{file: edited(t, good, "root: src", "root: src\ninclude: [gate]")}, "", true},
		"a mistaken repair":            {"", map[string]string{file: bad + "# x\n"}, file + ":11:1: tolerence: unknown field", false},
		"the base branch edits it too": {bad + "# later\n", map[string]string{file: good}, file + ":11:1: tolerence: unknown field", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTree(t)
			files := apart(t)
			files[file] = bad
			base := r.commit(files)
			head := r.commit(c.edit)
			opt := plan.Options{Base: base, Head: head}
			if c.trusted != "" {
				r.git("checkout", "--quiet", base)
				opt.Trusted = r.commit(map[string]string{file: c.trusted})
			}
			_, err := r.job(opt)
			if wantMistake(t, err, file+":11:1: tolerence: unknown field"); strings.Contains(err.Error(), hint) != c.repairs {
				t.Errorf("the advice is %v", err)
			}
			opt.Repairs = true
			job, err := r.job(opt)
			if c.says != "" {
				wantMistake(t, err, c.says)
				return
			}
			if err != nil || len(job.Broken) > 0 || job.ManifestText != c.edit[file] || job.Baseline == nil {
				t.Fatalf("the job is %+v (%v)", job, err)
			}
			if was, is := r.read(job.Baseline.Dir, ".repository/src/scale.c"), r.read(job.Candidate.Dir, ".repository/src/scale.c"); was != "// base\n" || c.edit["src/scale.c"] != "" && is != c.edit["src/scale.c"] {
				t.Errorf("the baseline has %q and the candidate %q", was, is)
			}
			if notes := strings.Join(job.Notes, " "); !strings.Contains(notes, "tolerence") || !strings.Contains(notes, "approve") {
				t.Errorf("the notes are %q", notes)
			}
		})
	}
}

// TestMistakenManifestIsRemoved checks that a manifest with mistakes can be removed like any other:
// the result is a kernel that is gone, which the gates hold.
func TestMistakenManifestIsRemoved(t *testing.T) {
	r := newTree(t)
	files := apart(t)
	files["gate/k/kernel.yaml"] = "]\n"
	base := r.commit(files)
	job, err := r.job(plan.Options{Base: base, Head: r.commit(map[string]string{"gate/k/kernel.yaml": ""})})
	if err != nil || !job.Removed || job.RemovedEvidence().Kernel != "k" || job.Rule().Name != "default" || job.Provenance.Base.SHA != base {
		t.Errorf("the job is %+v (%v)", job, err)
	}
}

// TestNamedKernelsNeedNoOthers checks that a mistake in another kernel's manifest does not concern
// a caller who names the kernel to check.
func TestNamedKernelsNeedNoOthers(t *testing.T) {
	r := newTree(t)
	files := apart(t)
	files["other/kernel.yaml"] = "]\n"
	base := r.commit(files)
	job, err := r.job(plan.Options{Base: base, Head: base, Kernels: []string{"gate/k"}})
	if err != nil || job.Manifest.Name != "scale" {
		t.Errorf("the job is %+v (%v)", job, err)
	}
	_, err = r.job(plan.Options{Base: base, Head: base, Kernels: []string{"other"}})
	wantMistake(t, err, "other/kernel.yaml:1:1: is not valid YAML")
}

// TestMisspelledManifests checks that a new manifest whose name is almost right is not ignored, and
// that other programs' files are.
func TestMisspelledManifests(t *testing.T) {
	for name, refused := range map[string]bool{
		"new/kernel.yml": true, "new/Kernel.yaml": true, "new/KERNEL.YML": true, "new/scale.kernel.yml": true, "new/scale.Kernel.yaml": true, "kernel.yml": true,
		"new/kernels.yaml": false, "new/.kernel.yml": false, "new/akernel.yml": false,
	} {
		r := newTree(t)
		base := r.commit(apart(t))
		_, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{name: manifestYAML})}).Kernels(t.Context())
		if refused {
			wantMistake(t, err, name+":1:1: a manifest of this name gates no kernel (call it kernel.yaml")
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A change that renames it is not refused.
	r := newTree(t)
	files := apart(t)
	files["new/kernel.yml"] = manifestYAML
	misspelled := r.commit(files)
	keys, err := r.plan(plan.Options{Base: misspelled, Head: r.commit(map[string]string{"new/kernel.yml": "", "new/kernel.yaml": manifestYAML})}).Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != "new" {
		t.Errorf("renamed: %v, %v", keys, err)
	}
	r = newTree(t)
	base := r.commit(apart(t))
	if _, err := r.plan(plan.Options{Base: base, Head: r.commit(map[string]string{"boot/kernel.yml": "name: linux\nversion: 6\n"})}).Kernels(t.Context()); err != nil {
		t.Errorf("another program's file: %v", err)
	}
}

// TestNewPolicyWithMistakes checks that a change that only breaks the policy does not pass as one
// that changes no kernel. A bot has it approved instead.
func TestNewPolicyWithMistakes(t *testing.T) {
	r := newTree(t)
	base := r.commit(apart(t))
	head := r.commit(map[string]string{".github/kernelgate.yaml": "]\n"})
	_, err := r.plan(plan.Options{Base: base, Head: head}).Kernels(t.Context())
	wantMistake(t, err, ".github/kernelgate.yaml:1:1: is not valid YAML")
	if keys, err := r.plan(plan.Options{Base: base, Head: head, Repairs: true}).Kernels(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("a bot: %v, %v", keys, err)
	}
	r.git("checkout", "--quiet", base)
	renamed := r.commit(map[string]string{".github/kernelgate.yaml": "", ".github/kernelgate.yml": policyYAML})
	_, err = r.plan(plan.Options{Base: base, Head: renamed}).Kernels(t.Context())
	wantMistake(t, err, ".github/kernelgate.yml:1:1: this file is not read")
}
