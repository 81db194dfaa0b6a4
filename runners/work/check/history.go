package check

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// History judges the evidence that is stored with a kernel and shows, as Markdown, what each
// variant gained.
func History(folder, policyName string) (string, error) {
	return history(folder, policyName, report.History)
}

// TerminalHistory is History for a terminal.
func TerminalHistory(folder, policyName string, opt report.TerminalOptions) (string, error) {
	return history(folder, policyName, func(kernel string, verdicts []*gates.Verdict, lessons map[string]string) string {
		return report.TerminalHistory(kernel, verdicts, lessons, opt)
	})
}

func history(folder, policyName string, form func(string, []*gates.Verdict, map[string]string) string) (string, error) {
	policy, file, err := ReadPolicy(policyName)
	if err != nil {
		return "", err
	}
	all, err := storedEvidence(folder)
	if err != nil {
		return "", err
	}
	var verdicts []*gates.Verdict
	for _, evidence := range all {
		verdicts = append(verdicts, gates.Judge(policy, file, evidence))
	}
	lessons, err := Lessons(filepath.Join(folder, manifest.FileName))
	if err != nil {
		return "", err
	}
	return form(filepath.Base(folder), verdicts, lessons), nil
}

// storedEvidence reads the evidence that a kernel's folder has, by the names of the files. Without any, it reads that of the
// kernel's runs in the folder results of the repository, the oldest first.
func storedEvidence(folder string) ([]*gates.Evidence, error) {
	files, err := filepath.Glob(filepath.Join(folder, "evidence", "*.json"))
	if err != nil {
		return nil, err
	}
	kept := len(files) > 0
	if runs := inRepository(folder, "results"); !kept && runs != "" {
		for _, pattern := range []string{"*/evidence.json", "*/*/evidence.json"} {
			more, _ := filepath.Glob(filepath.Join(runs, pattern)) // the pattern is right
			files = append(files, more...)
		}
	}
	name := filepath.Base(folder)
	if text, err := results.ReadAtMost(filepath.Join(folder, manifest.FileName), strict.MaxBytes); err == nil {
		if m, err := manifest.Parse(manifest.FileName, text); err == nil {
			name = m.Name
		}
	}
	var all []*gates.Evidence
	for _, f := range files {
		evidence, err := ReadEvidence(f)
		if err != nil {
			return nil, err
		}
		if kept || evidence.Kernel == name {
			all = append(all, evidence)
		}
	}
	if len(all) == 0 {
		return nil, usage.Errorf("%s has no evidence/*.json, and the folder results has no run of %s (run kernelgate check, or store evidence of it there)", folder, name)
	}
	if !kept {
		slices.SortStableFunc(all, func(a, b *gates.Evidence) int { return a.Provenance.Time.Compare(b.Provenance.Time) })
	}
	return all, nil
}

// Lessons reads the lessons of a manifest's variants. The manifest may be missing, because evidence
// alone has a history too.
func Lessons(file string) (map[string]string, error) {
	text, err := results.ReadAtMost(file, strict.MaxBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	m, err := manifest.Parse(file, text)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	lessons := make(map[string]string)
	for _, v := range m.Variants {
		lessons[v.Name] = v.Lesson
	}
	return lessons, nil
}

// PolicyHere returns the policy that the arguments of a command name or, if they name none, the
// policy file of the repository that contains the current folder.
func PolicyHere(ctx context.Context, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	repo, err := checkout.Open(ctx, ".")
	if err != nil {
		return "", usage.Errorf("no policy was named, and there is no repository to take one from: %w", err)
	}
	file := filepath.Join(repo.Dir(), filepath.FromSlash(PolicyFile))
	if _, err := os.Stat(file); err != nil {
		return "", usage.Errorf("the repository has no %s (write one, or name a policy: a file, or one of %s)", PolicyFile, strings.Join(policies.ShippedNames(), ", "))
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, file); err == nil {
			file = rel
		}
	}
	return file, nil
}
