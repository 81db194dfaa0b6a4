package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/shell"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// named finds kernels by their folders or manifests, by the last parts of those, or by the names in
// the manifests, if the name is unambiguous.
func (p *Plan) named(ctx context.Context, all, names []string) ([]string, error) {
	var picked []string
	var called map[string]string // by key
	for _, name := range names {
		name = strings.TrimSuffix(filepath.ToSlash(name), "/")
		if i := slices.IndexFunc(all, func(key string) bool { return key == name || manifest.FileOf(key) == name }); i >= 0 {
			picked = append(picked, all[i])
			continue
		}
		if called == nil {
			var err error
			if called, err = p.called(ctx, all); err != nil {
				return nil, err
			}
		}
		fit := slices.DeleteFunc(slices.Clone(all), func(key string) bool {
			last := path.Base(key)
			return last != name && last != name+"."+manifest.FileName && called[key] != name
		})
		switch {
		case len(fit) == 0:
			return nil, p.unknown(ctx, name, all, called)
		case len(fit) > 1:
			return nil, usage.Errorf("%q is several kernels (write one of %s)", name, strings.Join(fit, ", "))
		}
		picked = append(picked, fit[0])
	}
	return picked, nil
}

// unknown explains why no kernel has a name: similar names, manifests that gate nothing, and
// manifests that cannot be read.
func (p *Plan) unknown(ctx context.Context, name string, all []string, called map[string]string) error {
	if name == "." || manifest.IsManifest(name) && path.Dir(name) == "." {
		if found, err := p.opt.Repo.TopManifests(ctx, p.opt.Head); err != nil || len(found) > 0 {
			return cmp.Or(err, error(usage.Error{Err: checkout.Refused{File: strings.Join(found, ", "), Why: TopManifest}}))
		}
	}
	if len(all) == 0 {
		return usage.Errorf("no kernel named %q: the repository has no manifest (write kernels/%s/kernel.yaml)", name, path.Base(name))
	}
	var near []string
	for key, kernel := range called {
		near = append(near, key, kernel)
	}
	slices.Sort(near)
	advice := fmt.Sprintf("there are %s", strings.Join(all, ", "))
	if meant := strict.Meant(name, slices.Compact(near)); meant != "" {
		advice = fmt.Sprintf("did you mean %s? There are %s", meant, strings.Join(all, ", "))
	}
	var mistaken []string
	for _, key := range all {
		if called[key] == "" {
			mistaken = append(mistaken, manifest.FileOf(key))
		}
	}
	if len(mistaken) > 0 {
		advice += fmt.Sprintf("; no name can be read from %s, which has a mistake: see kernelgate policy lint %s", strings.Join(mistaken, ", "), shell.Quote(mistaken[0]))
	}
	return usage.Errorf("no kernel named %q (%s)", name, advice)
}

// called returns the names in the manifests, by key. A manifest with mistakes has none; the
// mistakes are reported when the kernel is requested by its folder.
func (p *Plan) called(ctx context.Context, all []string) (map[string]string, error) {
	texts, err := p.manifests(ctx, p.opt.Head, all)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for key, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err // parsing many manifests takes long
		}
		if m, err := manifest.Parse(manifest.FileOf(key), text); err == nil {
			names[key] = m.Name
		}
	}
	return names, nil
}

// manifests returns the manifests of a revision, by key. If the revision lacks one, it is the
// trusted revision's.
func (p *Plan) manifests(ctx context.Context, rev string, keys []string) (map[string][]byte, error) {
	var files []string
	for _, key := range keys {
		files = append(files, manifest.FileOf(key))
	}
	found, err := p.texts(ctx, rev, files)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(files, func(file string) bool { return found[file] != nil })
	newer, err := p.texts(ctx, p.opt.Trusted, missing)
	if err != nil {
		return nil, err
	}
	maps.Copy(found, newer)
	texts := map[string][]byte{}
	for _, key := range keys {
		if text, ok := found[manifest.FileOf(key)]; ok {
			texts[key] = text
		}
	}
	return texts, nil
}
