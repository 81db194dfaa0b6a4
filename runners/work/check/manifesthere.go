package check

import (
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// ManifestHere finds the manifest of a kernel in a folder and those below it. Without a name there must be only one.
func ManifestHere(dir, kernel string) (file string, m *manifest.Manifest, text []byte, err error) {
	files, err := filesOf([]string{dir})
	if err != nil {
		return "", nil, nil, usage.Error{Err: err}
	}
	var names []string
	var broken error
	for _, name := range files {
		content, err := results.ReadAtMost(name, strict.MaxBytes)
		if err != nil {
			return "", nil, nil, usage.Error{Err: err}
		}
		if !isManifest(name, content) {
			continue
		}
		found, err := manifest.Parse(name, content)
		if err != nil {
			broken = err
			continue
		}
		if kernel == "" || found.Name == kernel {
			file, m, text = name, found, content
			names = append(names, found.Name+" in "+name)
		}
	}
	switch {
	case len(names) == 1:
		return file, m, text, nil
	case len(names) > 1 && kernel == "":
		err = usage.Errorf("%s has several kernels: %s (name one by --kernel)", dir, strings.Join(names, ", "))
	case len(names) > 1:
		err = usage.Errorf("%s has several kernels of this name: %s (name a folder by --dir)", dir, strings.Join(names, ", "))
	case broken != nil:
		err = usage.Error{Err: broken}
	case kernel == "":
		err = usage.Errorf("%s has no manifest of a kernel (name a folder by --dir)", dir)
	default:
		err = usage.Errorf("%s has no kernel %q (name a folder by --dir)", dir, kernel)
	}
	return "", nil, nil, err
}
