package toolchain

import (
	"fmt"
	"path"

	"github.com/kernelgate/kernelgate/runners/sandbox"
)

// pycache is the folder in which Python keeps compiled modules. It runs these in place of the sources next to them, and a digest
// cannot have them: they differ from one installation to the next.
const pycache = "__pycache__"

// withoutPycache shows an empty folder in place of each __pycache__ of the package, so that what runs is the sources, which the
// digest has. Those of the kernel's own folder are left to the rules about lookups.
func (t *Triton) withoutPycache(empty string) ([]sandbox.Place, error) {
	var places []sandbox.Place
	err := walk(t.Folder, ".", nil, func(name, real string, isFolder bool) {
		if isFolder && path.Base(name) == pycache {
			places = append(places, sandbox.Place{Host: empty, Inside: real})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the compiled modules of Triton: %w", err)
	}
	return places, nil
}
