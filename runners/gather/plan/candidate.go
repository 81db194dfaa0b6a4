package plan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
)

// candidate gives the candidate the head's implementation. Edits of the problem are reported and
// ignored. Mistakes in the head's manifest are the author's to fix, like a source that does not
// compile.
func (p *Plan) candidate(ctx context.Context, job *runners.Job, before *runners.Side) error {
	if before == nil {
		return nil // a new kernel: the manifest is already the head's
	}
	text, err := p.own(ctx, p.opt.Head, job.Key, job)
	if err != nil || text == nil {
		return err
	}
	was, err := p.own(ctx, p.opt.Base, job.Key, job)
	if err != nil {
		return err
	}
	if bytes.Equal(was, text) {
		// Only the base branch has changed it, and a merge has the base branch's manifest.
		return nil
	}
	file := manifest.FileOf(job.Key)
	if was != nil {
		job.Broken = []gates.Diagnostic{{File: file, Line: 1, Severity: "error", Message: "the base branch has changed the manifest since this branch left it, and so does the change (update the branch)"}}
		return nil
	}
	own, err := manifest.Parse(file, text)
	if err != nil {
		return broken(job, err)
	}
	m, err := manifest.Join(file, []byte(job.ManifestText), text)
	if err != nil {
		return broken(job, err)
	}
	job.Candidate.Manifest, job.Candidate.ManifestText, job.Candidate.Variant = m, string(text), m.DefaultVariant
	job.Broken = shed(job, job.Of(*before))
	if more := takesMore(job.Of(*before), m); len(more) > 0 {
		job.Notes = append(job.Notes, fmt.Sprintf("The head's default variant takes shapes that the base's does not: %s. There is nothing to compare them with, and they are not judged.", strings.Join(more, ", ")))
	}
	tell(job, manifest.Compare(job.Manifest, own))
	return nil
}

// tell adds a note that the edits have no effect yet.
func tell(job *runners.Job, edits compare.List) {
	if len(edits) == 0 {
		return
	}
	var list []string
	for _, d := range edits {
		d = d.Clipped(maxEdit)
		list = append(list, fmt.Sprintf("%s: %s → %s", d.Path, d.Old, d.New))
	}
	if more := len(list) - maxEdits; more > 0 {
		list = append(list[:maxEdits], fmt.Sprintf("and %d more", more))
	}
	job.Notes = append(job.Notes, "The change edits the problem in "+path.Base(manifest.FileOf(job.Key))+". It is judged by the base's, and the edit takes effect when it is merged: "+strings.Join(list, "; ")+".")
}

// Limits on the edits in a note.
const (
	maxEdits = 20
	maxEdit  = 120 // bytes of each part
)

// broken reports mistakes in the head's manifest as compile errors of the candidate.
func broken(job *runners.Job, err error) error {
	var mistakes strict.Problems
	if !errors.As(err, &mistakes) {
		return err
	}
	for _, m := range mistakes {
		job.Broken = append(job.Broken, gates.Diagnostic{File: m.File, Line: m.Line, Column: m.Column, Severity: "error", Message: m.Text()})
	}
	return nil
}

// absent finds folders that the candidate's sources are in or include from, and that the head does
// not have.
func absent(job *runners.Job) []gates.Diagnostic {
	var all []gates.Diagnostic
	m := job.Of(job.Candidate)
	for _, folder := range m.Elsewhere() {
		if _, err := os.Stat(filepath.Join(job.Candidate.Dir, manifest.RepositoryFolder, filepath.FromSlash(folder))); err == nil {
			continue
		}
		field := "include"
		if folder == m.Root {
			field = "root"
		}
		all = append(all, mistake(job, fmt.Sprintf("%s: the head has no file in the folder %s (write its path from the repository's root; links are not followed)", field, folder), field))
	}
	return all
}

// mistake returns a diagnostic in the manifest that the candidate is built by.
func mistake(job *runners.Job, message string, path ...string) gates.Diagnostic {
	text := cmp.Or(job.Candidate.ManifestText, job.ManifestText)
	line, column := strict.PlaceOf([]byte(text), path...)
	return gates.Diagnostic{File: manifest.FileOf(job.Key), Line: line, Column: column, Severity: "error", Message: message}
}

// shed finds shapes that the policy asks for and that the base's default variant supports, but the
// head's does not. No author can remove a shape: the policy decides on which shapes the kernel is
// judged.
func shed(job *runners.Job, base *manifest.Manifest) []gates.Diagnostic {
	m := job.Candidate.Manifest
	shapes, secret := manifest.Sheds(base, m)
	asked, asksSecret := askedFor(job.Policy, m.ShapeNames())
	shapes = slices.DeleteFunc(shapes, func(name string) bool { return !slices.Contains(asked, name) })
	var what []string
	if len(shapes) > 0 {
		what = append(what, "the shapes "+strings.Join(shapes, ", "))
	}
	if secret && asksSecret {
		what = append(what, "some of the secret shapes")
	}
	if len(what) == 0 {
		return nil
	}
	message := fmt.Sprintf("variants.%s.limits: leave out %s, which the policy asks for and the base's default variant takes (widen them, or keep the default variant)", m.DefaultVariant, strings.Join(what, " and "))
	return []gates.Diagnostic{mistake(job, message, "variants", m.DefaultVariant, "limits")}
}

// takesMore returns the shapes that the head's default variant supports and the base's does not.
func takesMore(base, head *manifest.Manifest) []string {
	var more []string
	for _, s := range head.ShapesFor(head.DefaultVariant) {
		if !base.Supports(base.DefaultVariant, s.Dims) {
			more = append(more, s.Name)
		}
	}
	return more
}

// askedFor returns the shapes that any rule of the policy asks for, and whether any rule asks for
// secret ones.
func askedFor(p *policy.Policy, known []string) (shapes []string, secret bool) {
	for _, r := range p.Rules {
		for _, asked := range r.Gates.Inputs() {
			shapes = append(shapes, asked.Shapes.Pick(known)...)
			secret = secret || asked.Secret
		}
	}
	return shapes, secret
}
