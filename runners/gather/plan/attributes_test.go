package plan_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// TestAttributesTouchKernels checks that a change of attributes that gives a kernel's sources other
// bytes in every checkout is a change of the kernel, and that other attributes are not.
func TestAttributesTouchKernels(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       string
	}{
		"keywords":                {".gitattributes", "*.c ident\n", "gate/k"},
		"keywords in the folder":  {"src/.gitattributes", "*.c ident\n", "gate/k"},
		"line ends":               {".gitattributes", "src/* eol=crlf\n", "gate/k"},
		"a filter":                {".gitattributes", "scale.c filter=other\n", "gate/k"},
		"a macro":                 {".gitattributes", "[attr]mine ident\n*.c mine\n", "gate/k"},
		"the reference":           {"gate/.gitattributes", "k/*.c filter=x\n", "gate/k"},
		"no conversion":           {".gitattributes", "*.c linguist-language=C\n", ""},
		"files of nobody":         {".gitattributes", "*.md filter=x\n", ""},
		"another folder":          {"docs/.gitattributes", "*.c filter=x\n", ""},
		"nothing to replace":      {".gitattributes", "*.yaml ident\n", ""},
		"a folder with that name": {"srcs/.gitattributes", "*.c filter=x\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTree(t)
			files := apart(t)
			files["src/scale.c"], files["docs/a.c"], files["srcs/a.c"] = "// $Id$\n", "// a\n", "// a\n"
			base := r.commit(files)
			head := r.commit(map[string]string{c.file: c.text})
			keys, err := r.plan(plan.Options{Base: base, Head: head}).Kernels(t.Context())
			if err != nil || strings.Join(keys, " ") != c.want {
				t.Errorf("the change touches %q (%v), want %q", keys, err, c.want)
			}
			// To take the attribute away again changes the bytes as well.
			r.git("rm", "--quiet", c.file)
			keys, err = r.plan(plan.Options{Base: head, Head: r.commit(nil)}).Kernels(t.Context())
			if err != nil || strings.Join(keys, " ") != c.want {
				t.Errorf("without it: the change touches %q (%v), want %q", keys, err, c.want)
			}
		})
	}
}
