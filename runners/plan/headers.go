package plan

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
)

// read finds the headers outside their folders that kernels may read, at the base and at
// the head. There is no compiler here to ask: texts are searched for what they include,
// and whatever is not plain to see counts as including everything.
func (p *Plan) read(ctx context.Context, head, base []string) error {
	p.headers = map[string]map[string]bool{}
	if len(p.changed) == 0 {
		return nil
	}
	for _, at := range []struct {
		rev     string
		folders []string
	}{{p.opt.Base, base}, {p.opt.Head, head}} {
		var names []string
		for _, folder := range at.folders {
			names = append(names, folder+"/"+kernels.FileName)
		}
		manifests, err := p.texts(ctx, at.rev, names)
		if err != nil {
			return err
		}
		for _, folder := range at.folders {
			name := folder + "/" + kernels.FileName
			if !bytes.Contains(manifests[name], []byte("include")) {
				continue
			}
			m, err := kernels.Parse(name, manifests[name])
			if err != nil || !slices.ContainsFunc(m.Include, func(dir string) bool { return p.changes(dir) }) {
				continue // a wrong one is told where the change touches it
			}
			found, err := p.headersOf(ctx, at.rev, folder, m)
			if err != nil {
				return err
			}
			if p.headers[folder] == nil {
				p.headers[folder] = map[string]bool{}
			}
			for _, file := range found {
				p.headers[folder][file] = true
			}
		}
	}
	return nil
}

// changes tells whether the change touches a file below a folder.
func (p *Plan) changes(dir string) bool {
	return slices.ContainsFunc(p.changed, func(f string) bool { return strings.HasPrefix(f, dir+"/") })
}

// texts is files at a revision, the work tree as well; what is not there, or no file, is
// left out.
func (p *Plan) texts(ctx context.Context, rev string, names []string) (map[string][]byte, error) {
	if rev != "" {
		return p.opt.Repo.ReadAll(ctx, rev, names)
	}
	texts := map[string][]byte{}
	for _, name := range names {
		if text, err := p.opt.Repo.Read(ctx, rev, name); err == nil {
			texts[name] = text
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	return texts, nil
}

// headersOf is the files below a kernel's include folders that its sources may read.
func (p *Plan) headersOf(ctx context.Context, rev, folder string, m *kernels.Manifest) ([]string, error) {
	var headers []string
	for _, dir := range m.Include {
		files, err := p.opt.Repo.Files(ctx, rev, dir)
		if err != nil {
			return nil, err
		}
		headers = append(headers, files...)
	}
	own, err := p.opt.Repo.Files(ctx, rev, folder)
	if err != nil {
		return nil, err
	}
	there, reached := map[string]bool{}, map[string]bool{}
	for _, f := range slices.Concat(headers, own) {
		there[f] = true
	}
	var next []string
	reach := func(f string) {
		if there[f] && !reached[f] {
			reached[f] = true
			next = append(next, f)
		}
	}
	for _, f := range own {
		if m.IsSource(strings.TrimPrefix(f, folder+"/")) {
			reach(f)
		}
	}
	for _, dir := range m.Include {
		reach(path.Join(dir, "stdc-predef.h")) // what gcc reads unasked
	}
	for len(next) > 0 {
		texts, err := p.texts(ctx, rev, next)
		if err != nil {
			return nil, err
		}
		next = nil
		for from, text := range texts {
			names, plain := included(text, m.Mode)
			if !plain {
				return headers, nil
			}
			for _, name := range names {
				for _, dir := range append([]string{path.Dir(from)}, m.Include...) {
					reach(path.Join(dir, name))
				}
			}
		}
	}
	return slices.DeleteFunc(headers, func(f string) bool { return !reached[f] }), nil
}

var (
	// spelling is the other ways to write # and the end of a line that goes on.
	spelling = strings.NewReplacer("??/", "\\", "??=", "#", "%:", "#")
	goesOn   = regexp.MustCompile(`\\[ \t\v\f\r]*\n`)
	// reads is a line that may read another file, however it is written.
	reads = regexp.MustCompile(`(?m)^.*(?:#|\*/).*\b(?:include|include_next|import|embed)\b.*$|^.*(?:__has_include|__has_embed|pch_preprocess).*$`)
	// plainly is one that does so in the usual way.
	plainly = regexp.MustCompile(`^[ \t\v\f]*#[ \t\v\f]*include[ \t\v\f]*(?:"([^"]+)"|<([^>]+)>)[ \t\v\f\r]*(?://.*|/\*[^*]*\*/[ \t\r]*)?$`)
	// assembles may have an assembler read a file, under a name that is put together.
	assembles = regexp.MustCompile(`asm|##`)
)

// included is the names that a source includes. It is not plain where they cannot all be
// told. A comment counts as text: one that only looks like it would hide what is read.
func included(text []byte, mode kernels.Mode) (names []string, plain bool) {
	text = goesOn.ReplaceAll([]byte(spelling.Replace(string(text))), nil)
	if mode == kernels.ModeCPU && assembles.Match(text) {
		return nil, false
	}
	for _, line := range reads.FindAll(text, -1) {
		m := plainly.FindSubmatch(line)
		if m == nil {
			return nil, false
		}
		name := string(m[1]) + string(m[2])
		if strings.Contains(name, kernels.IncludeFolder) {
			return nil, false // around the folders' own paths
		}
		names = append(names, name)
	}
	return names, true
}
