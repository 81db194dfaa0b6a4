package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners"
)

// withheld finds files of the kernel's folder that the change edits and its sources read,
// but that it may not bring, for they are no sources: the candidate would be built with the
// base's, and what is merged would be something else.
func (p *Plan) withheld(ctx context.Context, job *runners.Job) ([]gates.Diagnostic, error) {
	m, folder := job.Of(job.Candidate), kernels.FolderOf(job.Key)
	if m.Mode == kernels.ModeCommand || m.Root != "" || p.opt.Variant != "" {
		return nil, nil
	}
	edited, err := p.notBrought(ctx, job, folder)
	if err != nil || len(edited) == 0 {
		return nil, err
	}
	v, err := m.Variant(job.Candidate.Variant)
	if err != nil {
		return nil, err
	}
	s, err := p.scan(ctx, p.opt.Head, folder, m)
	if err != nil {
		return nil, err
	}
	for _, f := range edited {
		s.there[f] = true // one that the head deletes too
	}
	s.source(folder, m, v)
	read, plain, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	var all []gates.Diagnostic
	for _, f := range edited {
		if slices.Contains(read, f) && (plain || slices.Contains(code, path.Ext(f))) {
			all = append(all, mistake(job, fmt.Sprintf("sources: %s is read by %s and edited by the change, which may not bring it, since it is no source in the base: it would be merged unjudged (name it in sources there first, or put the edit into a new file)", f, v.Source), "sources"))
		}
	}
	return all, nil
}

// code is what files are called that a source may read without saying so plainly.
var code = []string{".h", ".hh", ".hpp", ".hxx", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".cu", ".inc", ".inl", ".ipp", ".tpp", ".def", ".ptx", ".py"}

// notBrought is the files of a folder that the change edits and the candidate does not have
// as they are at the head.
func (p *Plan) notBrought(ctx context.Context, job *runners.Job, folder string) ([]string, error) {
	var names, edited []string
	for _, f := range p.changed {
		rel, inside := strings.CutPrefix(f, folder+"/")
		if inside && !kernels.IsManifest(f) && (job.Manifest.Reference == nil || rel != job.Manifest.Reference.Source) {
			names = append(names, f)
		}
	}
	texts, err := p.texts(ctx, p.opt.Head, names)
	if err != nil {
		return nil, err
	}
	for _, f := range names {
		has, err := os.ReadFile(filepath.Join(job.Candidate.Dir, filepath.FromSlash(strings.TrimPrefix(f, folder+"/"))))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		wants, there := texts[f]
		if there != (err == nil) || !bytes.Equal(has, wants) {
			edited = append(edited, f)
		}
	}
	return edited, nil
}
