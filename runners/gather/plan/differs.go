package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// The folder of a side consists of trusted files and of the sources that the change may supply. A
// checkout of the merged change can have different files: files that the change edits but may not
// supply, links, files that git converts, and files that the base branch changed since. The builder
// gets a list of these files, and refuses a source that reads one of them or tests whether it
// exists.

// maxDiffers bounds the list.
const maxDiffers = 20_000

// The reasons why a checkout has a different file than a build.
const (
	notBrought = "the change edits it, and may not bring it to the build, since it is no source in the base: it would be merged unjudged (name it in sources there first, or put the edit into a new file)"
	isLink     = "it is a link, which no build may read (put a file in its place)"
	isModule   = "it is a submodule, which no build may read (name its folder under include)"
	isStale    = "the base branch has changed it since this branch left it (update the branch)"
	notGiven   = "it lies in the folder of the manifest, and a build gets only the files below root and include (move it there, or import nothing from this folder)"
	isManifest = "it is a manifest, which no build may read (a source must not depend on it)"
	converted  = "its attribute %s in .gitattributes gives it other bytes in every checkout (take the attribute off it)"
)

// differs finds the files that are different in a checkout than in a side's folder, which was
// assembled from the trusted revision and from the sources at another revision. A merge has the
// trusted revision's version of every file that the change did not edit.
func (p *Plan) differs(ctx context.Context, job *runners.Job, sources string, s runners.Side) ([]runners.Difference, error) {
	m := job.Of(s)
	if runners.ModeOf(m).OwnHarness() {
		return nil, nil // a harness may read anything
	}
	own := manifest.FolderOf(job.Key)
	folders := map[string]string{own: s.Dir}
	if m.Root != "" && below(own, m.Root) {
		delete(folders, own) // it is built as a part of the root
	}
	for _, folder := range m.Elsewhere() {
		folders[folder] = filepath.Join(s.Dir, manifest.RepositoryFolder, filepath.FromSlash(folder))
	}
	var edited map[string]bool
	if sources == p.opt.Head {
		edited = p.edited
	}
	var all []runners.Difference
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		within, err := p.mergedSubmodule(ctx, folder, sources, edited)
		if err != nil {
			return nil, err
		}
		var found []runners.Difference
		if within != nil {
			found, err = p.differsWithin(ctx, *within, folders[folder])
		} else {
			found, err = p.differsIn(ctx, folder, folders[folder], sources, edited)
			found = slices.DeleteFunc(found, func(d runners.Difference) bool { // no build gets recordings
				return job.Manifest.HoldsRecording(strings.TrimPrefix(d.Path, own+"/"))
			})
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if len(all) > maxDiffers {
		return nil, fmt.Errorf("the folder %s has more than %d files that no build is given: keep what is no source out of it", own, maxDiffers)
	}
	return all, nil
}

// mergedSubmodule returns the submodule that contains a folder once the change is merged: at the
// commit that the change sets, or at the trusted revision's commit.
func (p *Plan) mergedSubmodule(ctx context.Context, folder, sources string, edited map[string]bool) (*checkout.Submodule, error) {
	within, err := p.opt.Repo.Submodule(ctx, sources, folder)
	if err != nil || len(edited) == 0 || within != nil && edited[within.Path] {
		return within, err
	}
	return p.opt.Repo.Submodule(ctx, p.opt.Trusted, folder)
}

// differsWithin finds the files that are different in a checkout of a submodule than in the folder
// that the build was given: links, nested submodules, and files that the submodule's attributes
// convert.
func (p *Plan) differsWithin(ctx context.Context, s checkout.Submodule, dir string) ([]runners.Difference, error) {
	repo, err := p.opt.Repo.Within(ctx, s)
	if err != nil {
		return nil, err
	}
	entries, err := repo.Entries(ctx, s.Commit, s.Below)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(entries))
	attributes, err := repo.Attributes(ctx, names, func(string) string { return s.Commit })
	if err != nil {
		return nil, err
	}
	var all []runners.Difference
	for _, name := range names {
		add := func(why string) {
			all = append(all, runners.Difference{Path: path.Join(s.Path, name), Why: why})
		}
		switch entries[name].Kind {
		case checkout.SymbolicLink:
			add(isLink)
		case checkout.SubmoduleEntry:
			add(isModule)
		default:
			content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, s.Below+"/"))))
			if err != nil {
				return nil, err
			}
			if attribute := attributes.Converts(name, content); attribute != "" {
				add(fmt.Sprintf(converted, attribute))
			}
		}
	}
	return all, nil
}

// differsIn finds the different files of one folder, which the build has on disk.
func (p *Plan) differsIn(ctx context.Context, folder, dir, sources string, edited map[string]bool) ([]runners.Difference, error) {
	repo := p.opt.Repo
	brought, err := repo.Entries(ctx, sources, folder)
	if err != nil {
		return nil, err
	}
	trusted, base := brought, brought
	if len(edited) > 0 && p.opt.Trusted != sources {
		if trusted, err = repo.Entries(ctx, p.opt.Trusted, folder); err != nil {
			return nil, err
		}
		if base = trusted; p.opt.Base != p.opt.Trusted {
			if base, err = repo.Entries(ctx, p.opt.Base, folder); err != nil {
				return nil, err
			}
		}
	}
	names := maps.Clone(trusted)
	maps.Copy(names, brought)
	attributes, err := repo.Attributes(ctx, slices.Sorted(maps.Keys(names)), func(file string) string {
		if len(edited) == 0 || edited[file] {
			return sources
		}
		return p.opt.Trusted
	})
	if err != nil {
		return nil, err
	}
	var all []runners.Difference
	add := func(name, why string) { all = append(all, runners.Difference{Path: name, Why: why}) }
	for _, name := range slices.Sorted(maps.Keys(names)) {
		merged, there := trusted[name]
		why := isStale
		if edited[name] {
			merged, there = brought[name]
			if why = notBrought; trusted[name] != base[name] {
				add(name, isStale)
				continue
			}
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, folder+"/"))))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		has := err == nil
		switch {
		case there && merged.Kind == checkout.SymbolicLink:
			add(name, isLink)
		case there && merged.Kind == checkout.SubmoduleEntry:
			add(name, isModule)
		case there != has || there && merged.Object != checkout.BlobOf(content, len(merged.Object)):
			switch {
			case manifest.IsManifest(name):
				why = isManifest
			case there && !has && !edited[name]:
				why = notGiven
			}
			add(name, why)
		case has:
			if attribute := attributes.Converts(name, content); attribute != "" {
				add(name, fmt.Sprintf(converted, attribute))
			}
		}
	}
	return all, nil
}
