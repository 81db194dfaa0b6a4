package policy_test

import (
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// TestToolchains checks that pins are compared by their content, kind by kind.
func TestToolchains(t *testing.T) {
	parse := func(text string) policy.Toolchains {
		p, err := policy.Parse("p.yaml", []byte("version: 1\ntoolchains: "+text+"\ngates: {}\nrules: [{name: default}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Toolchains.Check(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		return p.Toolchains
	}
	none, old := parse("{}"), parse("{triton: {version: 3.6.0}}")
	for _, c := range []struct {
		from, to policy.Toolchains
		want     []string
	}{
		{none, none, nil}, {old, parse("{triton: {version: 3.6.0}}"), nil}, {none, old, []string{"triton"}}, {old, none, []string{"triton"}},
		{old, parse("{triton: {version: 3.9.0}, nvcc: {version: 13.0.88}}"), []string{"nvcc", "triton"}},
		{old, old.With(policy.NVCC, &policy.Toolchain{Version: "12.9.86"}), []string{"nvcc"}},
		{old, old.With(policy.Triton, nil), []string{"triton"}},
	} {
		if got := c.from.Moved(c.to); !slices.Equal(got, c.want) {
			t.Errorf("%v to %v moves %v, want %v", c.from.Triton, c.to.Triton, got, c.want)
		}
	}
	for _, wrong := range []policy.Toolchain{{Version: "3"}, {Version: "3.6.0/.."}, {Version: "3.6.0", Digest: "md5:0"}} {
		if (policy.Toolchains{Triton: &wrong}).Check() == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}
