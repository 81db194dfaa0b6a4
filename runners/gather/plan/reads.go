package plan

import (
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// elsewhere matches every manifest that names other folders. A backslash counts, because an escape
// may spell any word.
var elsewhere = regexp.MustCompile(`include|root|\\`)

// read finds the files that the builds of kernels may read outside a folder that only they use, at
// the base, at the trusted revision and at the head. It has no compiler to ask. So it searches the texts for includes, and
// treats every text that is not plain as including everything.
func (p *Plan) read(ctx context.Context, keys []string) error {
	p.shared, p.reads, p.homes = sharing(keys), map[string]map[string]bool{}, map[string][]string{}
	if len(p.changed) == 0 {
		return nil
	}
	var trusted map[string][]byte
	// The base branch may have moved a kernel's sources since the head branched off. A merge builds
	// the head's files by the manifest that the base branch has now.
	for _, rev := range slices.Compact([]string{p.opt.Trusted, p.opt.Base, p.opt.Head}) {
		manifests, err := p.manifests(ctx, rev, keys)
		if err != nil {
			return err
		}
		if trusted == nil {
			trusted = maps.Clone(manifests)
		}
		for _, key := range keys {
			if rev == p.opt.Head && !p.edited[manifest.FileOf(key)] && trusted[key] != nil {
				manifests[key] = trusted[key]
			}
			if err := ctx.Err(); err != nil {
				return err // parsing many manifests takes long
			}
			text := manifests[key]
			first := text != nil && p.homes[key] == nil
			if first {
				p.homes[key] = []string{manifest.FolderOf(key)}
			}
			if !p.shared[key] && !elsewhere.Match(text) {
				continue
			}
			m, err := manifest.Parse(manifest.FileOf(key), text)
			if err != nil || runners.ModeOf(m).OwnHarness() {
				// A harness may read anything. A wrong manifest of the base is refused, and one of
				// the head is a change of its kernel.
				delete(p.shared, key)
				continue
			}
			if first {
				p.homes[key] = append(p.homes[key], m.Elsewhere()...)
			}
			if err := p.note(ctx, rev, key, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharing returns the kernels whose folder has another kernel's manifest too.
func sharing(keys []string) map[string]bool {
	shared, first := map[string]bool{}, map[string]string{}
	for _, key := range keys {
		folder := manifest.FolderOf(key)
		if other, ok := first[folder]; ok {
			shared[key], shared[other] = true, true
		} else {
			first[folder] = key
		}
	}
	return shared
}

// note adds the files that a kernel reads at a revision, if the change may concern them.
func (p *Plan) note(ctx context.Context, rev, key string, m *manifest.Manifest) error {
	folders := m.Elsewhere()
	if p.shared[key] {
		folders = append(folders, manifest.FolderOf(key))
	}
	if p.reads[key] == nil {
		p.reads[key] = map[string]bool{}
	}
	about := false
	for _, f := range p.changed {
		for _, folder := range folders {
			about = about || below(f, folder)
			if folder == f || strings.HasPrefix(folder, f+"/") {
				// a submodule that contains the folder, or a link in its place
				p.reads[key][f] = true
			}
		}
	}
	if !about {
		return nil
	}
	found, err := p.readBy(ctx, rev, key, m)
	for _, f := range found {
		p.reads[key][f] = true
	}
	return err
}

// below tells whether a file lies in a folder; all lie in the repository's own.
func below(file, folder string) bool { return folder == "." || strings.HasPrefix(file, folder+"/") }

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

// readBy returns the files that the builds of a kernel and of its reference may read.
func (p *Plan) readBy(ctx context.Context, rev, key string, m *manifest.Manifest) ([]string, error) {
	folder := manifest.FolderOf(key)
	s, err := p.scan(ctx, rev, folder, m)
	if err != nil {
		return nil, err
	}
	s.start(folder, m, p.shared[key])
	if m.Reference != nil {
		s.reach(path.Join(folder, m.Reference.Source))
	}
	return s.run(ctx)
}

// scan creates a scan of a kernel's files at a revision.
func (p *Plan) scan(ctx context.Context, rev, folder string, m *manifest.Manifest) (*scan, error) {
	s := &scan{plan: p, rev: rev, assembler: runners.ModeOf(m).Assembler, include: m.IncludeFolders(), there: map[string]bool{}, reached: map[string]bool{}}
	unseen := len(m.IncludeSets()) > 0 // headers whose text cannot be searched here
	for _, dir := range append(m.Elsewhere(), folder) {
		files, err := p.opt.Repo.Files(ctx, rev, dir)
		if err != nil {
			return nil, err
		}
		within, err := p.opt.Repo.Submodule(ctx, rev, dir)
		if err != nil {
			return nil, err
		}
		unseen = unseen || within != nil
		for _, f := range files {
			s.there[f] = true
		}
	}
	for _, dir := range m.FirstFolders() {
		s.reachAll(dir) // the system's headers may include it
	}
	for _, dir := range s.include {
		s.reach(path.Join(dir, "stdc-predef.h")) // gcc reads this one implicitly
		if unseen {
			s.reachAll(dir) // one of them may include it by its bare name
		}
	}
	return s, nil
}

// A scan follows the includes of texts.
type scan struct {
	plan *Plan
	rev  string
	// assembler says that a source can make an assembler read a file.
	assembler bool
	include   []string // folders
	there     map[string]bool
	reached   map[string]bool
	next      []string
	unclear   bool // a source is in a language whose includes are not known
}

// preprocessed lists the extensions of sources whose includes the C preprocessor reads.
var preprocessed = []string{".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".cuh"}

// start adds the files that a build begins with: the sources of the variants. If only this kernel
// uses its folder, other sources there count too.
func (s *scan) start(folder string, m *manifest.Manifest, shared bool) {
	for _, v := range m.Variants {
		s.source(folder, m, v)
	}
	for f := range s.there {
		if rel, ok := strings.CutPrefix(f, folder+"/"); ok && !shared && m.IsSource(rel) {
			s.reach(f)
		}
	}
}

func (s *scan) source(folder string, m *manifest.Manifest, v manifest.Variant) {
	if m.Root != "" {
		folder = m.Root
	}
	// A build program may read anything that it sees, whatever the name of its source.
	s.unclear = s.unclear || m.Compiler == manifest.Program || !slices.Contains(preprocessed, path.Ext(v.Source))
	s.reach(path.Join(folder, v.Source))
}

func (s *scan) reach(f string) {
	if s.there[f] && !s.reached[f] {
		s.reached[f] = true
		s.next = append(s.next, f)
	}
}

func (s *scan) reachAll(folder string) {
	for f := range s.there {
		if strings.HasPrefix(f, folder+"/") {
			s.reach(f)
		}
	}
}

// run lists the files that are reached, or every file if the includes cannot all be followed.
func (s *scan) run(ctx context.Context) ([]string, error) {
	if s.unclear {
		return slices.Sorted(maps.Keys(s.there)), nil
	}
	for len(s.next) > 0 {
		texts, err := s.plan.texts(ctx, s.rev, s.next)
		if err != nil {
			return nil, err
		}
		s.next = nil
		for from, text := range texts {
			if path.Ext(from) == ".py" {
				continue // a reference, which is shown no other file of the repository
			}
			names, plain := Included(text, s.assembler)
			if !plain {
				return slices.Sorted(maps.Keys(s.there)), nil
			}
			for _, i := range names {
				for _, dir := range append([]string{path.Dir(from)}, s.include...) {
					s.reach(path.Join(dir, i.Name))
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(s.reached)), nil
}

var (
	// spelling replaces alternative spellings of # and of the line continuation.
	spelling = strings.NewReplacer("??/", "\\", "??=", "#", "%:", "#")
	goesOn   = regexp.MustCompile(`\\[ \t\v\f\r]*\n`)
	// reads matches a line that may read another file, however it is written.
	reads = regexp.MustCompile(`(?m)^.*(?:#|\*/).*\b(?:include|include_next|import|embed)\b.*$|^.*(?:__has_include|__has_embed|pch_preprocess).*$`)
	// plainly matches a line that does so in the usual way.
	plainly = regexp.MustCompile(`^[ \t\v\f]*#[ \t\v\f]*include[ \t\v\f]*(?:"([^"]+)"|<([^>]+)>)[ \t\v\f\r]*(?://.*|/\*[^*]*\*/[ \t\r]*)?$`)
	// probes matches a test whether a header exists, and able a test whether one can test that.
	probes = regexp.MustCompile(`\b__has_include[ \t\v\f]*\([ \t\v\f]*(?:"([^"]+)"|<([^>]+)>)[ \t\v\f]*\)`)
	able   = regexp.MustCompile(`\bdefined[ \t\v\f]*(?:\([ \t\v\f]*__has_include[ \t\v\f]*\)|[ \t\v\f]__has_include\b)|^[ \t\v\f]*#[ \t\v\f]*ifn?def[ \t\v\f]+__has_include\b`)
	// begins matches a word that token pasting may extend to a hidden test for a header.
	begins = regexp.MustCompile(`\b(?:__?|__ha?|__has_?|__has_in?|__has_incl?|__has_includ?|__has_inclu|__has_em?|__has_embe?)\b`)
	// assembles matches text that may make an assembler read a file whose name is pasted together.
	assembles = regexp.MustCompile(`asm|##`)
)

// An Include is a file that a text reads by name.
type Include struct {
	Name   string
	Beside bool // it is searched for next to the text first
}

// Included returns the names that a source includes or tests for: whether a header exists affects
// the build as much as its contents. plain is false if the names cannot all be determined. Comments
// count as text: otherwise a text that only looks like a comment could hide an include. With assembler, anything that may make
// an assembler read a file hides its name.
func Included(text []byte, assembler bool) (names []Include, plain bool) {
	take := func(m [][]byte) {
		names = append(names, Include{Name: string(m[1]) + string(m[2]), Beside: len(m[1]) > 0})
	}
	text = goesOn.ReplaceAll([]byte(spelling.Replace(string(text))), nil)
	if begins.Match(text) || assembler && assembles.Match(text) {
		return nil, false
	}
	for _, line := range reads.FindAll(text, -1) {
		for _, m := range probes.FindAllSubmatch(line, -1) {
			take(m)
		}
		rest := able.ReplaceAll(probes.ReplaceAll(line, []byte("0")), []byte("1"))
		if !reads.Match(rest) {
			continue
		}
		m := plainly.FindSubmatch(line)
		if m == nil {
			return nil, false
		}
		take(m)
	}
	for _, i := range names {
		if strings.Contains(i.Name, manifest.RepositoryFolder) {
			return nil, false // bypasses the folders' own paths
		}
	}
	return names, true
}
