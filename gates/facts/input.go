package facts

import (
	"fmt"
	"strings"
)

// An Input is what a kernel is run on.
type Input struct {
	Shape        string `json:"shape"`
	Dims         string `json:"dims"`
	Seed         uint64 `json:"seed"`
	Distribution string `json:"distribution"`
	Secret       bool   `json:"secret,omitempty"`
}

// Label names the input as people read it.
func (i Input) Label() string {
	name := i.Shape
	if i.Secret {
		name = fmt.Sprintf("secret shape (%s)", i.Dims)
	}
	return fmt.Sprintf("%s, seed %d, %s inputs", name, i.Seed, i.Distribution)
}

// Flags names the input to kernelgate check.
func (i Input) Flags() string {
	return fmt.Sprintf("--shape %s --seed %d --inputs %s", strings.ReplaceAll(i.Dims, " ", ","), i.Seed, i.Distribution)
}

// An UnknownShape is a shape that the policy names and the manifest does not.
type UnknownShape struct{ Name string }

func (u UnknownShape) Sentence() string {
	return fmt.Sprintf("shape %s, which the kernel's manifest does not have", u.Name)
}

// A SecretCasesLacking is how many secret cases are missing.
type SecretCasesLacking struct{ Cases int }

func (s SecretCasesLacking) Sentence() string { return fmt.Sprintf("%d secret cases", s.Cases) }
