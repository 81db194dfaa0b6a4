package toolchain

import (
	"fmt"
	"path"

	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

// pycache is the folder in which Python keeps compiled modules. Python runs these instead of the
// sources, and a digest cannot include them, because they differ between installations.
const pycache = "__pycache__"

// withoutPycache shows an empty folder in place of each __pycache__ of the package, so that Python
// runs the sources, which the digest includes. The rules about lookups cover those of the kernel's
// own folder.
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
