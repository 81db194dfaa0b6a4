package cpu

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/gather"
)

const numpyReference = "import numpy\n\ndef reference(x):\n    return 2 * x\n"

// pythonLanguages is the test's manifest with a reference in Python.
func pythonLanguages(t testing.TB) (*manifest.Manifest, *policy.Policy) {
	t.Helper()
	if _, err := pyref.Find(t.Context(), os.Getenv); err != nil && os.Getenv("CI") == "" {
		t.Skipf("no Python with NumPy: %v", err)
	}
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", []byte(strings.Replace(string(text), "source: reference.c", "source: reference.py", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, p := languages(t)
	return m, p
}

// pythonWorker makes a worker whose base and head bring these files beside their sources.
func pythonWorker(t testing.TB, m *manifest.Manifest, p *policy.Policy, candidate string, base, head map[string]string) *Worker {
	t.Helper()
	side := func(source string, files map[string]string) runners.Side {
		all := map[string]string{"scale.c": source}
		for name, text := range files {
			all[name] = text
		}
		return runners.Side{Dir: sourceFolder(t, all), Variant: m.DefaultVariant}
	}
	b := side(baseline, base)
	job := runners.Job{Manifest: m, Policy: p, Trusted: b.Dir, Baseline: &b, Candidate: side(candidate, head)}
	return newWorker(t, job, Config{Scratch: t.TempDir(), LaunchTimeout: time.Minute, Seed: 1, Getenv: os.Getenv})
}

// A reference in Python serves correctness and timed launches as one in C does, and evidence says what ran.
func TestPythonReference(t *testing.T) {
	m, p := pythonLanguages(t)
	timing := p.Rules[0].Gates.Performance
	p.Rules[0].Gates.Performance = nil
	for name, c := range map[string]struct {
		body    string
		outcome gates.Outcome
		reason  gates.Reason
	}{
		"right": {"for (int i = 0; i < N; i++) y[i] = 2 * x[i];", gates.Pass, ""},
		"wrong": {"for (int i = 0; i < N; i++) y[i] = 2 * x[i] + (N > 500 ? 0.5f : 0);", gates.Defer, gates.ReasonCorrectness},
	} {
		w := pythonWorker(t, m, p, include+"void scale(const float *x, float *y, int32_t N) { "+c.body+" }\n", map[string]string{"reference.py": numpyReference}, nil)
		e, err := gather.Gather(t.Context(), w.job, w, silent{})
		if err != nil || e.Fault != "" {
			t.Fatalf("%s: %v %s", name, err, e.Fault)
		}
		if v := gates.Judge(p, "test.yaml", e); v.Outcome != c.outcome || v.Reason != c.reason {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
		mission, _ := m.Shape("mission")
		round, err := w.Round(t.Context(), timing, []manifest.Shape{mission}, silent{})
		if err != nil || len(round.Series) != 1 || round.Series[0].Referenced == 0 || (round.Series[0].Worst.Bad > 0) != (name == "wrong") {
			t.Fatalf("%s: %+v %v", name, round, err)
		}
		digest, err := pyref.Digest(m, w.job.Trusted)
		if err != nil {
			t.Fatal(err)
		}
		if tools := e.Provenance.Tools; tools["reference"] != "reference.py "+digest || tools["reference python"] == "" || tools["reference numpy"] == "" {
			t.Errorf("%s: the tools are %v", name, tools)
		}
	}
}

// Whatever the head puts beside its sources, the base's reference computes with the packages that are installed.
func TestHeadCannotReachPythonReference(t *testing.T) {
	m, p := pythonLanguages(t)
	const liar = "raise SystemExit('the head was imported')\n"
	w := pythonWorker(t, m, p, include+"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n",
		map[string]string{"reference.py": numpyReference},
		map[string]string{
			"reference.py": "def reference(x):\n    return 3 * x\n", "numpy.py": liar, "torch.py": liar, "sitecustomize.py": liar, "usercustomize.py": liar,
			"json.py": liar, "evil.pth": "import os; os._exit(7)\n", "pyvenv.cfg": "home = /nowhere\n",
		})
	if b, err := w.Build(t.Context(), runners.Candidate, w.job.Candidate); err != nil || !b.OK {
		t.Fatal(b.Error, err)
	}
	c, err := w.Correctness(t.Context(), p.Rules[0].Gates.Correctness, silent{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range c.Cases {
		if one.Failure != nil || one.Errors == nil || one.Errors.Bad > 0 {
			t.Errorf("%+v", one)
		}
	}
}

// Files of the base that have the names of packages are not imported either: the reference sees its own file.
func TestBaseCannotShadowPackages(t *testing.T) {
	m, p := pythonLanguages(t)
	const liar = "raise SystemExit('a file of the repository was imported')\n"
	w := pythonWorker(t, m, p, baseline, map[string]string{"reference.py": "import os\n" + numpyReference + "assert sorted(os.listdir('/reference')) == ['reference.py', 'serve.py']\n", "numpy.py": liar, "sitecustomize.py": liar, "x.pth": "import os; os._exit(7)\n"}, nil)
	if _, err := w.CheckReference(t.Context()); err != nil {
		t.Error(err)
	}
}

// A kernel that looks for the reference's process or files is stopped like any that makes such a call.
func TestCandidateCannotReachPythonReference(t *testing.T) {
	m, p := pythonLanguages(t)
	for name, c := range map[string]struct{ before, says string }{
		"its processes": {"DIR *d = opendir(\"/proc\"); struct dirent *e; while (d && (e = readdir(d))) { char f[300]; snprintf(f, 300, \"/proc/%s/mem\", e->d_name); FILE *m = fopen(f, \"r\"); if (m) y[0] = 1; }", "the kernel called openat"},
		"its files":     {"FILE *f = fopen(\"/reference/reference.py\", \"r\"); if (f) y[0] = 1;", "the kernel called openat"},
		"its memory":    {"char b; struct iovec l = {&b, 1}, r = {(void *)x, 1}; for (int pid = 1; pid < 100; pid++) process_vm_readv(pid, &l, 1, &r, 1, 0);", "the kernel called process_vm_readv"},
		"its pipes":     {"char b; for (int fd = 6; fd < 64; fd++) if (read(fd, &b, 1) >= 0) y[0] = 1e9;", "the kernel called read"},
	} {
		t.Run(name, func(t *testing.T) {
			source := "#define _GNU_SOURCE\n#include <dirent.h>\n#include <stdio.h>\n#include <sys/uio.h>\n" + include +
				"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; " + c.before + " }\n"
			w := pythonWorker(t, m, p, source, map[string]string{"reference.py": numpyReference}, nil)
			if b, err := w.Build(t.Context(), runners.Candidate, w.job.Candidate); err != nil || !b.OK {
				t.Fatal(b.Error, err)
			}
			found, err := w.Correctness(t.Context(), p.Rules[0].Gates.Correctness, silent{})
			if err != nil {
				t.Fatal(err)
			}
			last := found.Cases[len(found.Cases)-1]
			if last.Failure == nil || !strings.Contains(last.Failure.Detail, c.says) {
				t.Errorf("%+v: %+v", last, last.Failure)
			}
		})
	}
}

// Whoever brings the reference is blamed for it, with the line.
func TestPythonReferenceIsBlamed(t *testing.T) {
	m, p := pythonLanguages(t)
	broken := "import numpy\n\ndef reference(x):\n    return x.reshape(-1, 0)\n"
	for name, isNew := range map[string]bool{"base": false, "new": true} {
		w := pythonWorker(t, m, p, include+"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = x[i] + x[i]; }\n", map[string]string{"reference.py": broken}, map[string]string{"reference.py": broken})
		if isNew {
			w.job.Baseline = nil
			w.python.Close()
			w = newWorker(t, w.job, w.config)
		}
		e, err := gather.Gather(t.Context(), w.job, w, silent{})
		if err != nil {
			t.Fatal(err)
		}
		v := gates.Judge(p, "test.yaml", e)
		const says = "raised ValueError: cannot reshape array of size 64 into shape (0) (line 4)"
		at := e.FaultAt
		if isNew && (v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(e.Candidate.Error, "the reference reference.py "+says)) {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, e.Candidate.Error)
		}
		if !isNew && (v.Outcome != gates.Error || !e.Setup || !strings.Contains(e.Fault, "the reference reference.py of the base "+says)) {
			t.Errorf("%s: %s: %s", name, v.Outcome, e.Fault)
		}
		if isNew {
			at = e.Candidate.Diagnostics
		}
		if len(at) == 0 || at[0].File != "reference.py" || at[0].Line != 4 {
			t.Errorf("%s: %+v", name, at)
		}
	}
}
