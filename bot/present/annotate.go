package present

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

const maxAnnotations = 200

// annotations puts a verdict's findings on the lines that they are about. The
// note says what could not be put there.
func (v View) annotations(r change.Run) (all []client.Annotation, note string) {
	verdict := v.Verdicts[r.Job]
	if verdict == nil || r.Phase != change.Done {
		return nil, ""
	}
	findings := slices.Clone(verdict.Findings)
	// What stops a build must not be crowded out by warnings.
	slices.SortStableFunc(findings, func(a, b gates.Diagnostic) int { return rank(level(a.Severity)) - rank(level(b.Severity)) })
	for _, f := range findings {
		file, ok := inRepository(manifest.FolderOf(r.Folder), f.File)
		message := report.Clip(report.Plain(f.Message), 1000)
		if !ok || message == "" {
			continue
		}
		line := max(f.Line, 1)
		all = append(all, client.Annotation{
			Path: file, StartLine: line, EndLine: line, Level: level(f.Severity),
			Title: report.Clip(report.Plain(word(r)+" "+r.Name), titleRunes), Message: message,
		})
	}
	if extra := len(all) - maxAnnotations; extra > 0 {
		all = all[:maxAnnotations]
		note = fmt.Sprintf("%d findings are shown on their lines, %d more are not.\n", maxAnnotations, extra)
	}
	return all, note
}

func rank(level string) int { return slices.Index([]string{"failure", "warning", "notice"}, level) }

func level(severity string) string {
	switch strings.ToLower(severity) {
	case "warning":
		return "warning"
	case "note", "info", "remark":
		return "notice"
	}
	return "failure"
}

// inRepository is a compiler's file name from the repository's root. Compilers
// run in the kernel's folder, where other folders of the repository stand below one; a
// header of the system or of the runner is nobody's line to mend.
func inRepository(folder, file string) (string, bool) {
	folder = path.Clean(cmp.Or(folder, "."))
	if file == "" || path.IsAbs(file) || strings.ContainsFunc(file, func(r rune) bool { return r < ' ' }) {
		return "", false
	}
	file = path.Clean(file)
	if strings.HasPrefix(file, manifest.SetsFolder+"/") {
		return "", false
	}
	if shared, ok := strings.CutPrefix(file, manifest.RepositoryFolder+"/"); ok {
		return shared, true
	}
	if !strings.HasPrefix(file, folder+"/") {
		file = path.Join(folder, file)
	}
	return file, file != "." && file != ".." && !strings.HasPrefix(file, "../")
}

func problemAnnotations(problems []gates.Diagnostic) []client.Annotation {
	var all []client.Annotation
	for _, p := range problems[:min(len(problems), maxAnnotations)] {
		file, ok := inRepository("", p.File)
		message := report.Clip(report.Plain(p.Message), 1000)
		if ok && message != "" {
			line := max(p.Line, 1)
			all = append(all, client.Annotation{Path: file, StartLine: line, EndLine: line, Level: "failure", Title: "Mistake", Message: message})
		}
	}
	return all
}
