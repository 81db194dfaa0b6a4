package plan

import (
	"context"
	"path"
	"slices"

	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// attributesFile is where a folder says how git checks its files out.
const attributesFile = ".gitattributes"

// convert finds the kernels whose files have other bytes in every checkout because the change edits
// attributes, although the files themselves are as before. Such a change touches the kernel.
func (p *Plan) convert(ctx context.Context, keys []string) error {
	edited := slices.DeleteFunc(slices.Clone(p.changed), func(name string) bool { return path.Base(name) != attributesFile })
	if len(edited) == 0 || p.opt.Head == "" { // a work tree is a checkout itself
		return nil
	}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, file := range edited {
			concerned := slices.ContainsFunc(p.homes[key], func(folder string) bool {
				return below(file, folder) || below(folder+"/", path.Dir(file))
			})
			if !concerned || p.reads[key][file] {
				continue
			}
			converts, err := p.converts(ctx, p.homes[key], file)
			if err != nil {
				return err
			}
			if converts && p.reads[key] == nil {
				p.reads[key] = map[string]bool{}
			}
			if converts {
				p.reads[key][file] = true
			}
		}
	}
	return nil
}

// converts reports whether a file of the folders is converted by other attributes once the change to
// one file of attributes is merged.
func (p *Plan) converts(ctx context.Context, folders []string, edited string) (bool, error) {
	repo, names := p.opt.Repo, []string(nil)
	for _, folder := range folders {
		files, err := repo.Files(ctx, p.opt.Trusted, folder)
		if err != nil {
			return false, err
		}
		names = append(names, files...)
	}
	texts, err := repo.ReadAll(ctx, p.opt.Trusted, names)
	if err != nil {
		return false, err
	}
	var attributes [2]*checkout.Attributes
	for i, rev := range []string{p.opt.Trusted, p.opt.Head} {
		attributes[i], err = repo.Attributes(ctx, names, func(file string) string {
			if file == edited {
				return rev
			}
			return p.opt.Trusted
		})
		if err != nil {
			return false, err
		}
	}
	for name, text := range texts {
		if attributes[0].Converts(name, text) != attributes[1].Converts(name, text) {
			return true, nil
		}
	}
	return false, nil
}
