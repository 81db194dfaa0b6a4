package check

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/results"
	"github.com/kernelgate/kernelgate/runners/work/scaffold"
)

// Lint reads policies and manifests, which it distinguishes by their content, and says what each
// is. In addition to mistakes in one file it finds missing references between files: sources that a
// manifest names, and shapes that a policy asks for. The error has every mistake in every file. A
// warning is printed and is no mistake. In a folder it reads the policy and the manifests.
func Lint(out io.Writer, names []string) error {
	files, err := filesOf(names)
	problems := []error{err}
	var manifests []*manifest.Manifest
	var read []policyText
	for _, file := range files {
		text, err := results.ReadAtMost(file, strict.MaxBytes)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if isManifest(file, text) {
			m, err := lintManifest(file, text)
			if problems = append(problems, err); err != nil {
				continue
			}
			manifests = append(manifests, m)
			for _, w := range m.Warnings() {
				line, column := strict.PlaceOf(text, w.Field...)
				fmt.Fprintf(out, "%s:%d:%d: warning: %s: %s\n", file, line, column, strings.Join(w.Field, "."), w.Text)
			}
			fmt.Fprintf(out, "%s: ok: kernel %s, %s, shapes %s, variants %s\n", file, m.Name, m.Mode, strings.Join(m.ShapeNames(), " "), strings.Join(m.Named(), " "))
			continue
		}
		p, err := policy.Parse(file, text)
		if problems = append(problems, err); err != nil {
			continue
		}
		read = append(read, policyText{p, file, text})
	}
	for _, p := range read {
		err := p.shapes(manifests)
		if problems = append(problems, err); err == nil {
			fmt.Fprintf(out, "%s: ok: policy with the rules %s\n", p.file, strings.Join(p.policy.RuleNames(), ", "))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return usage.Error{Err: err}
	}
	return nil
}

// filesOf returns the named files, and those in the named folders.
func filesOf(names []string) (files []string, err error) {
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			files = append(files, name)
			continue
		}
		known := len(files)
		walked := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(name, path)
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == ".git":
				return fs.SkipDir
			case d.Type().IsRegular() && (filepath.ToSlash(rel) == PolicyFile || manifest.IsManifest(filepath.ToSlash(rel))):
				files = append(files, path)
			}
			return nil
		})
		if walked == nil && len(files) == known {
			walked = fmt.Errorf("%s: holds neither %s nor a %s (name the root of a repository, or files)", name, PolicyFile, manifest.FileName)
		}
		err = errors.Join(err, walked)
	}
	return files, err
}

// isManifest distinguishes a manifest from a policy by keys that only one of them has, and
// otherwise by its name.
func isManifest(file string, text []byte) bool {
	var keys map[string]yaml.Node
	if yaml.Unmarshal(text, &keys) == nil {
		for _, key := range []string{"mode", "shapes", "arguments"} {
			if _, ok := keys[key]; ok {
				return true
			}
		}
		for _, key := range []string{"gates", "rules"} {
			if _, ok := keys[key]; ok {
				return false
			}
		}
	}
	return manifest.IsManifest(filepath.ToSlash(file))
}

// lintManifest parses a manifest, and checks that the files that it names exist.
func lintManifest(file string, text []byte) (*manifest.Manifest, error) {
	m, err := manifest.Parse(file, text)
	if err != nil {
		return nil, err
	}
	var mistakes []error
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), ".git")); err == nil && manifest.IsManifest(filepath.ToSlash(file)) {
		mistakes = append(mistakes, fmt.Errorf("%s:1:1: %s", file, plan.TopManifest))
	}
	look := func(in, name string, path ...string) {
		if name == "" || in == "" {
			return
		}
		where := "beside the manifest"
		if in != filepath.Dir(file) {
			where = "in " + m.Root
		}
		if _, err := os.Stat(filepath.Join(in, filepath.FromSlash(name))); errors.Is(err, os.ErrNotExist) {
			line, column := strict.PlaceOf(text, path...)
			mistakes = append(mistakes, fmt.Errorf("%s:%d:%d: %s: there is no file %s %s (write its name, or add it)", file, line, column, strings.Join(path, "."), name, where))
		}
	}
	beside := filepath.Dir(file)
	sources := beside
	if m.Root != "" {
		sources = inRepository(beside, m.Root)
	}
	if m.Source != "" {
		look(sources, m.Source, "source")
		if sources != "" {
			mistakes = append(mistakes, swapped(file, text, m, filepath.Join(sources, filepath.FromSlash(m.Source))))
		}
	} else {
		for _, v := range m.Variants {
			look(sources, v.Source, "variants", v.Name, "source")
		}
	}
	if m.Reference != nil {
		look(beside, m.Reference.Source, "reference", "source")
	}
	return m, errors.Join(mistakes...)
}

// swapped finds arguments in a different order than the kernel's parameters of the same names. Two of the same type would be passed
// for each other, and nothing else would notice. Triton's are passed by name.
func swapped(file string, text []byte, m *manifest.Manifest, source string) error {
	entry, err := manifest.ParseEntry(m.Entry)
	if err != nil || !entry.Plain() || path.Ext(source) == ".py" || path.Ext(source) == ".ptx" {
		return nil
	}
	code, err := results.ReadAtMost(source, maxSource)
	if err != nil {
		return nil // reported as missing, or by the build
	}
	names, ok := scaffold.ParameterNames(string(code), m.Entry)
	var passed, fields []string
	for i, a := range m.Arguments {
		if !m.Inside(a.Name) {
			passed, fields = append(passed, a.Name), append(fields, fmt.Sprintf("arguments[%d].name", i))
		}
	}
	if !ok || len(names) != len(passed) {
		return nil
	}
	for i, name := range passed {
		if at := slices.Index(names, name); at >= 0 && at != i {
			line, column := strict.PlaceOf(text, "arguments")
			return fmt.Errorf("%s:%d:%d: %s: %s is parameter %d of %s in %s, and the manifest passes it as number %d (write the arguments in this order: %s)",
				file, line, column, fields[i], name, at+1, m.Entry, filepath.Base(source), i+1, strings.Join(names, ", "))
		}
	}
	return nil
}

const maxSource = 16 << 20

// inRepository returns the path of a folder of the repository that contains dir, or "" if there is
// no repository.
func inRepository(dir, folder string) string {
	for at := dir; ; at = filepath.Join(at, "..") {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return filepath.Join(at, filepath.FromSlash(folder))
		}
		if full, err := filepath.Abs(at); err != nil || full == filepath.Dir(full) {
			return ""
		}
	}
}

// A policyText is a policy with its file.
type policyText struct {
	policy *policy.Policy
	file   string
	text   []byte
}

// shapes finds the shapes that the policy names and no manifest has, and those that are outside the
// limits of the variant that every kernel with such a shape is gated by.
func (p policyText) shapes(manifests []*manifest.Manifest) error {
	var known []string
	outside := map[string]string{} // the kernel and the variant, by shape
	for _, m := range manifests {
		known = append(known, m.ShapeNames()...)
		for _, s := range m.Shapes {
			if m.Supports(m.DefaultVariant, s.Dims) {
				outside[s.Name] = ""
			} else if _, seen := outside[s.Name]; !seen {
				outside[s.Name] = fmt.Sprintf("the variant %s of %s", m.DefaultVariant, m.Name)
			}
		}
	}
	if len(manifests) == 0 {
		return nil
	}
	slices.Sort(known)
	known = slices.Compact(known)
	var mistakes []error
	said := map[string]bool{}
	for _, r := range p.policy.Rules {
		for _, asked := range r.Gates.Inputs() {
			field := "gates." + asked.Field
			line, column := strict.PlaceOf(p.text, strings.Split(field, ".")...)
			add := func(format string, args ...any) {
				text := fmt.Sprintf("%s:%d:%d: %s: ", p.file, line, column, field) + fmt.Sprintf(format, args...)
				if !said[text] {
					said[text] = true
					mistakes = append(mistakes, errors.New(text))
				}
			}
			for _, name := range asked.Shapes.Names {
				if !slices.Contains(known, name) {
					add("no manifest has the shape %q (they have %s)", name, strings.Join(known, ", "))
				} else if outside[name] != "" {
					add("the shape %q is outside the limits of %s, which a change is gated by (name other shapes, or widen its limits)", name, outside[name])
				}
			}
		}
		mistakes = append(mistakes, p.unmet(r, manifests)...)
	}
	return errors.Join(mistakes...)
}

// unmet finds the kernels that cannot have what a rule asks for.
func (p policyText) unmet(r policy.Rule, manifests []*manifest.Manifest) (mistakes []error) {
	for _, m := range manifests {
		if !p.policy.MayApply(r.Name, m.Name) {
			continue
		}
		for _, u := range plan.Unmet(&r, m) {
			field := "gates." + u.Field
			line, column := strict.PlaceOf(p.text, strings.Split(field, ".")...)
			mistakes = append(mistakes, fmt.Errorf("%s:%d:%d: %s: rule %s: %s", p.file, line, column, field, r.Name, u.Why))
		}
	}
	return mistakes
}
