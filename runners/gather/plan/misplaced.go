package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// TopManifest explains what is wrong with a manifest in the repository's top folder.
const TopManifest = "a manifest in the repository's top folder gates no kernel, since its folder would be the whole repository (move it with its source and reference to a folder, e.g. kernels/scale/kernel.yaml; root: csrc names the sources' folder where they stay)"

// misspelled explains what is wrong with a manifest's name.
const misspelled = "a manifest of this name gates no kernel (call it " + manifest.FileName + " or NAME." + manifest.FileName + ")"

// refuseMisplaced refuses a change after whose merge a manifest would gate no kernel: one in the
// repository's top folder, or one with a different spelling of the name. It does not refuse a change
// that moves or renames the manifest of the base, nor one whose kernels the caller names.
func (p *Plan) refuseMisplaced(ctx context.Context) error {
	if p.chosen() {
		return nil
	}
	for _, rev := range []string{p.opt.Head, p.opt.Trusted} {
		found, err := p.opt.Repo.TopManifests(ctx, rev)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(found, func(file string) bool { return rev == p.opt.Head || !p.edited[file] }); i >= 0 {
			return usage.Error{Err: checkout.Refused{File: found[i], Why: TopManifest}}
		}
	}
	return p.refuseMisspelled(ctx)
}

// refuseMisspelled refuses a change after whose merge a manifest has almost the right name.
func (p *Plan) refuseMisspelled(ctx context.Context) error {
	merged := map[string]string{} // the revision that a merge takes the file from
	there, err := p.opt.Repo.Named(ctx, p.opt.Trusted, misspelt)
	if err != nil {
		return err
	}
	for _, file := range there {
		merged[file] = p.opt.Trusted
	}
	for _, file := range p.changed {
		if misspelt(file) {
			merged[file] = p.opt.Head
		}
	}
	for _, file := range slices.Sorted(maps.Keys(merged)) {
		text, err := p.opt.Repo.Read(ctx, merged[file], file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking for manifests: %w", err)
		}
		if looksLikeManifest(text) {
			return usage.Error{Err: strict.Problems{{File: file, Line: 1, Message: misspelled}}}
		}
	}
	return nil
}

// misspelt reports whether a file's name is almost that of a manifest.
func misspelt(file string) bool {
	return !manifest.IsManifest(file) && manifest.IsManifest(path.Dir(file)+"/"+normalized(path.Base(file)))
}

// manifestKeys matches the keys that most manifests begin their lines with.
var manifestKeys = regexp.MustCompile(`(?m)^(version|name|mode|entry|source|arguments|reference|tolerance|shapes)[ \t]*:`)

// looksLikeManifest reports whether a text was most likely written for this program, mistakes
// included.
func looksLikeManifest(text []byte) bool {
	keys := map[string]bool{}
	for _, m := range manifestKeys.FindAllSubmatch(text, -1) {
		keys[string(m[1])] = true
	}
	return len(keys) >= 4
}

// normalized returns a name of a YAML file in the spelling that this program uses.
func normalized(name string) string {
	name = strings.ToLower(name)
	if short, ok := strings.CutSuffix(name, ".yml"); ok {
		return short + ".yaml"
	}
	return name
}
