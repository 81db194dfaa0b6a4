package runners

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// BuildParts builds every variant that a side's choice may select on a device, and combines them
// into one build. It continues after a variant that does not compile, so that all errors are
// reported.
func BuildParts(m *manifest.Manifest, side Side, device string, build func(part Side) (gates.Build, error)) (gates.Build, error) {
	all := gates.Build{Variant: side.Variant, OK: true, Cached: true, Arch: device}
	code := sha256.New()
	for _, name := range m.Parts(side.Variant, device) {
		one := side
		one.Variant = name
		b, err := build(one)
		if err != nil {
			return all, err
		}
		part := gates.Part{Build: b}
		for _, s := range m.ServedBy(side.Variant, name, device) {
			part.Shapes = append(part.Shapes, s.Name)
		}
		all.Parts = append(all.Parts, part)
		all.Compiler, all.Digest, all.Seconds, all.Cached = b.Compiler, b.Digest, all.Seconds+b.Seconds, all.Cached && b.Cached
		all.Diagnostics = append(all.Diagnostics, b.Diagnostics...)
		if !b.OK && all.OK {
			all.OK, all.Error = false, fmt.Sprintf("variant %s: %s", name, b.Error)
		}
		fmt.Fprintf(code, "%q %q\n", name, b.Code)
	}
	if len(all.Parts) == 0 {
		return all, SetupErrorf("the choice of %s has no variant for %s (add one to choose in kernel.yaml that is built for it)", m.Name, device)
	}
	if all.OK {
		all.Code = hex.EncodeToString(code.Sum(nil))
	}
	return all, nil
}
