package policy

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Toolchains pins the compilers that build kernels. A pin refers to a compiler on the runner and
// installs nothing. If a runner does not have it, the run fails there.
type Toolchains struct {
	NVCC   *Toolchain `yaml:"nvcc" json:"nvcc,omitempty" eg:"{version: 13.0.88}" default:"(the runner's default)" doc:"nvcc with its ptxas, for CUDA, PTX, references and builds by a command of the manifest."`
	Triton *Toolchain `yaml:"triton" json:"triton,omitempty" eg:"{version: 3.6.0}" default:"(the runner's default)" doc:"Triton, for kernels in Python."`
}

// A Toolchain is one compiler.
type Toolchain struct {
	Version string `yaml:"version" json:"version" required:"true" eg:"13.0.88" bounds:"(the full version)" doc:"Version, as kernelgate doctor prints it."`
	Digest  string `yaml:"digest" json:"digest,omitempty" eg:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" default:"(any)" bounds:"(sha256: and 64 hexadecimal digits)" doc:"Digest of the installation, as kernelgate doctor prints it."`
}

// The compilers that can be pinned.
const (
	NVCC   = "nvcc"
	Triton = "triton"
)

// ToolchainKinds lists the compilers that can be pinned.
func ToolchainKinds() []string { return []string{NVCC, Triton} }

// Of returns the pin of a kind, or nil if there is none.
func (t Toolchains) Of(kind string) *Toolchain {
	return map[string]*Toolchain{NVCC: t.NVCC, Triton: t.Triton}[kind]
}

// With returns the pins with the pin of one kind replaced.
func (t Toolchains) With(kind string, pin *Toolchain) Toolchains {
	switch kind {
	case NVCC:
		t.NVCC = pin
	case Triton:
		t.Triton = pin
	}
	return t
}

// Moved lists the kinds whose pins differ.
func (t Toolchains) Moved(to Toolchains) []string {
	return slices.DeleteFunc(ToolchainKinds(), func(kind string) bool { return t.Of(kind).Equal(to.Of(kind)) })
}

// Equal reports whether both pins are the same, or both are missing.
func (t *Toolchain) Equal(other *Toolchain) bool {
	return t == other || t != nil && other != nil && *t == *other
}

// String returns a pin for people.
func (t *Toolchain) String() string {
	switch {
	case t == nil:
		return "the runner's own"
	case t.Digest == "":
		return t.Version
	}
	return fmt.Sprintf("%s (%.19s)", t.Version, t.Digest)
}

var (
	toolchainVersion = regexp.MustCompile(`^[0-9]+(\.[0-9A-Za-z+-]{1,20}){1,5}$`)
	toolchainDigest  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// IsToolchainVersion reports whether a text can be a compiler's version.
func IsToolchainVersion(text string) bool { return toolchainVersion.MatchString(text) }

// Check refuses pins that no policy could contain.
func (t Toolchains) Check() error {
	for _, kind := range ToolchainKinds() {
		pin := t.Of(kind)
		if pin != nil && (!IsToolchainVersion(pin.Version) || pin.Digest != "" && !toolchainDigest.MatchString(pin.Digest)) {
			return fmt.Errorf("the pin of %s is no version with a digest: %.80q", kind, pin.Version+" "+pin.Digest)
		}
	}
	return nil
}

func (p *Policy) checkToolchains(n *strict.Node) {
	for _, kind := range ToolchainKinds() {
		pin, at := p.Toolchains.Of(kind), n.Child(kind)
		if pin == nil {
			continue
		}
		if _, given := at.Child("version").Text(); given && !IsToolchainVersion(pin.Version) {
			at.Child("version").Errorf("%q is not a compiler's whole version (write e.g. 13.0.88, as kernelgate doctor prints it)", pin.Version)
		}
		if pin.Digest != "" && !toolchainDigest.MatchString(pin.Digest) {
			at.Child("digest").Errorf("%q is not a digest (write sha256: and 64 hexadecimal digits, as kernelgate doctor prints it)", pin.Digest)
		}
	}
}

// compareToolchains lists changed pins. The direction of a different compiler is unknown. In
// addition, every kernel that it builds is gated with it.
func compareToolchains(l *compare.List, old, new Toolchains) {
	for _, kind := range old.Moved(new) {
		l.Add("toolchains."+kind, pinned(old.Of(kind)), pinned(new.Of(kind)), compare.Changes)
	}
}

// pinned returns a pin in full.
func pinned(t *Toolchain) string {
	switch {
	case t == nil:
		return compare.None
	case t.Digest == "":
		return t.Version
	}
	return t.Version + " " + t.Digest
}
