package hindsight_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/hindsight"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const root = "../.."

// repositoryEvidence is every file of evidence in this repository. The results of local checks, which
// git ignores, are not part of it: a different version may have written them.
func repositoryEvidence(t testing.TB) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || path == filepath.Join(root, "results")) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".json" || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data[:min(len(data), 4096)], []byte(`"`+gates.EvidenceSchema+`"`)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readEvidence(t testing.TB, file string) *gates.Evidence {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ownPolicy is the policy that evidence was gathered by, as it is today: the one that its command
// names, or else the default.
func ownPolicy(t testing.TB, e *gates.Evidence) hindsight.Policy {
	t.Helper()
	name := "default"
	words := strings.Fields(e.Provenance.Command)
	if i := slices.Index(words, "--policy"); i >= 0 && i+1 < len(words) {
		name = words[i+1]
	}
	if text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))); err == nil {
		return parse(t, name, string(text))
	}
	if !slices.Contains(policies.ShippedNames(), name) {
		name = "default"
	}
	return shipped(t, name)
}

func shipped(t testing.TB, name string) hindsight.Policy {
	t.Helper()
	text, err := policies.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, name+".yaml", string(text))
}

func parse(t testing.TB, file, text string) hindsight.Policy {
	t.Helper()
	p, err := policy.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return hindsight.Policy{Policy: p, File: file}
}

// On every file of evidence in this repository, the table says what judge says: by the policy of the
// file no verdict flips, and by another the new verdict is that of judge.
func TestAgreesWithJudge(t *testing.T) {
	files := repositoryEvidence(t)
	if len(files) < 140 {
		t.Fatalf("%d files", len(files))
	}
	other := shipped(t, "l4")
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, root+"/"), func(t *testing.T) {
			t.Parallel()
			e := readEvidence(t, file)
			own := ownPolicy(t, e)
			row := hindsight.Judge(own, other, file, e)
			was, is := gates.Judge(own.Policy, own.File, e), gates.Judge(other.Policy, other.File, e)
			if row.Old.Outcome != was.Outcome || row.Old.Reason != was.Reason || row.Old.Summary != was.Summary || row.Old.Rule != was.Rule {
				t.Errorf("by %s it is %s %q, judge says %s (%s) %q", own.File, row.Old, row.Old.Summary, was.Outcome, was.Reason, was.Summary)
			}
			if row.New.Outcome != is.Outcome || row.New.Reason != is.Reason || row.New.Summary != is.Summary || row.New.Rule != is.Rule {
				t.Errorf("by %s it is %s %q, judge says %s (%s) %q", other.File, row.New, row.New.Summary, is.Outcome, is.Reason, is.Summary)
			}
			if want := gates.Next(other.Policy, e); want.Gate != "" && want.Gate != gates.GateProfile && (row.Lacks == nil || row.Lacks.Gate != want.Gate || row.Lacks.Want != want.Rounds) || want.Gate == "" && row.Lacks != nil && row.Lacks.Part == "" {
				t.Errorf("it lacks %v, Next asks for %+v", row.Lacks, want)
			}
			again := hindsight.Judge(own, parse(t, own.File, textOf(t, own.File)), file, e)
			if again.Flips() || !again.Old.Same(again.New) || again.OldSeconds > again.NewSeconds || again.Lacks != nil && !again.Lacks.Both {
				t.Errorf("by its own policy twice: %s and %s, lacks %v", again.Old, again.New, again.Lacks)
			}
		})
	}
}

// textOf is the text of a policy that ownPolicy has found.
func textOf(t testing.TB, file string) string {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file))); err == nil {
		return string(text)
	}
	text, err := policies.Shipped(strings.TrimSuffix(file, ".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
