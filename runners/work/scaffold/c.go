package scaffold

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// fromC describes a function of a C or C++ file.
func fromC(file, text, entry string) (*draft, error) {
	var all []function
	static := false
	for _, arrays := range []bool{true, false} { // rather a static function with an array than another without
		for _, static = range []bool{false, true} {
			if all = functionsIn(text, static, arrays); len(all) > 0 {
				break
			}
		}
		if len(all) > 0 {
			break
		}
	}
	if len(all) == 0 {
		return nil, usage.Errorf("%s defines no function (void f(...) { at the beginning of a line)", file)
	}
	if entry == "" { // a kernel returns nothing
		slices.SortStableFunc(all, func(a, b function) int { return toInt(a.returns) - toInt(b.returns) })
	}
	f, names := chosen(all, func(f function) string { return f.name }, entry)
	if f == nil {
		return nil, usage.Errorf("%s defines no function %s (write --entry with one of %s)", file, entry, strings.Join(names, ", "))
	}
	d := &draft{kind: "a C function", name: nameOf(f.name), mode: manifest.ModeCPU, folder: filepath.Dir(file), sources: filepath.Dir(file), rooted: true}
	d.line("version: 1\nname: %s\nmode: cpu", d.name)
	switch {
	case f.template != "":
		d.doubt(inTypes, fmt.Sprintf("entry: %s<%s>", f.name, strings.Join(defaults(f.template), ", ")), "its template arguments")
	case static:
		d.doubt(inArrays, "entry: "+word(f.name), "it is static, and a build calls what the linker knows: take static away, or name a source that includes the file and calls it")
	case len(all) > 1 && entry == "":
		d.doubt(inArrays, "entry: "+word(f.name), fmt.Sprintf("the first of %d functions in the file", len(all)))
	default:
		d.line("entry: %s", word(f.name))
	}
	d.line("source: %s", filepath.Base(file))
	d.line("flags: [-O2]")
	parameters := d.named(f.name, f.parameters)
	d.pythonReference(parameters, d.arguments(parameters))
	d.next = []string{"kernelgate policy lint .", "kernelgate check " + d.name}
	return d, nil
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
