package cpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// A reference is called with the parameters that the manifest declares, and a C function with
// different parameters runs all the same. So the compiler checks the type, in a source that includes
// the reference and assigns it to a pointer of the declared type.

// signatureOf returns the type of a pointer to the reference, before and behind its name.
func signatureOf(params []manifest.CParameter, changes func(manifest.CParameter) string) (before, behind string) {
	types := make([]string, len(params))
	for i, p := range params {
		types[i] = changes(p)
	}
	if len(types) == 0 {
		types = []string{"void"}
	}
	return "void (*", ")(" + strings.Join(types, ", ") + ")"
}

func asDeclared(p manifest.CParameter) string { return p.Type }

// withoutConst is a common form, which does not change the call.
func withoutConst(p manifest.CParameter) string { return strings.TrimPrefix(p.Type, "const ") }

// A typeQuery asks for the type of a function in a source.
type typeQuery struct {
	name   string // of what is built, for the folder
	dir    string // that the source is compiled in
	source string
	entry  manifest.Entry
	flags  []string
}

// checkReference checks that the reference takes the parameters that it is called with.
func (w *Worker) checkReference(ctx context.Context) error {
	m := w.job.Manifest
	entry, err := manifest.ParseEntry(m.Reference.Entry)
	if err != nil {
		return err
	}
	q := typeQuery{name: "reference", dir: w.job.Trusted, source: m.Reference.Source, entry: entry}
	params := m.ReferenceSignature()
	refusal, err := w.tryType(ctx, q, params, asDeclared)
	if err != nil || refusal == nil {
		return err
	}
	if lenient, err := w.tryType(ctx, q, params, withoutConst); err != nil || lenient == nil {
		return err
	}
	return w.job.ReferenceErrorf("does not take what the manifest passes: %s; declare it as %s", mismatch(params, refusal), m.ReferencePrototype(entry.Base()))
}

// tryType compiles a pointer to the function of a type; the refusal is nil where it has that type, or where the compiler refuses
// something else.
func (w *Worker) tryType(ctx context.Context, q typeQuery, params []manifest.CParameter, changes func(manifest.CParameter) string) (*output.CompileError, error) {
	out, err := w.folder(q.name, "signature")
	if err != nil {
		return nil, err
	}
	before, behind := signatureOf(params, changes)
	address, name := q.entry.Base(), language(q.source)
	if name == manifest.LanguageCXX {
		address = q.entry.Address()
	}
	file := filepath.Join(out, "signature.c")
	source := fmt.Sprintf("#include <stdbool.h>\n#include <stdint.h>\nextern %skernelgate_signature%s;\n%skernelgate_signature%s = %s;\n", before, behind, before, behind, address)
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		return nil, fmt.Errorf("writing the source that asks for the type of %s: %w", q.entry.Base(), err)
	}
	args := append(slices.Clone(q.flags), "-fsyntax-only", "-Werror=incompatible-pointer-types", "-include", q.source, "-x", name, file)
	_, err = w.compiler.Run(ctx, toolchain.Compile{Dir: q.dir, Args: args, Out: out})
	if refusal, ok := errors.AsType[*output.CompileError](err); ok {
		refusal.Log = linesOf(refusal.Log, file)
		if refusal.Log == "" {
			return nil, nil // it is not the type that is refused
		}
		return refusal, nil
	}
	return nil, err
}

// linesOf returns the errors of a compiler's log that are about a file.
func linesOf(log, file string) string {
	var own []string
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, file+":") && strings.Contains(line, "error: ") {
			own = append(own, line)
		}
	}
	return strings.Join(own, "")
}

// has matches the type of the reference in the messages of gcc and clang.
var has = regexp.MustCompile(`(?:from incompatible pointer type|invalid conversion from|with an expression of type) ['‘]void ?\(?\*?\)?\(([^'’]*)\)['’]`)

// mismatch names the first parameter that differs, if the compiler says so.
func mismatch(params []manifest.CParameter, refusal *output.CompileError) string {
	found := has.FindStringSubmatch(refusal.Log)
	if found == nil {
		return refusal.Summary
	}
	var own []string
	if found[1] != "void" && found[1] != "" {
		own = strings.Split(found[1], ", ")
	}
	for i := range own {
		own[i] = strings.TrimSpace(own[i])
	}
	for i := range max(len(own), len(params)) {
		switch {
		case i >= len(own):
			return fmt.Sprintf("it has %d parameters and the manifest %d; the first that is missing is %s (%s, %s)", len(own), len(params), params[i].Name, params[i].Type, params[i].Field)
		case i >= len(params):
			return fmt.Sprintf("it has %d parameters and the manifest %d; its parameter %d, %s, is passed nothing", len(own), len(params), i+1, own[i])
		case !alike(own[i], params[i].Type):
			return fmt.Sprintf("its parameter %d is %s, and %s (%s) is %s", i+1, own[i], params[i].Name, params[i].Field, params[i].Type)
		}
	}
	for i, p := range params { // the same but for who writes what
		if strings.HasPrefix(own[i], "const ") != strings.HasPrefix(p.Type, "const ") {
			return fmt.Sprintf("its parameter %d is %s, and %s (%s) is %s", i+1, own[i], p.Name, p.Field, p.Type)
		}
	}
	return refusal.Summary
}

// sameTypes are names of one type: a compiler shows the one that the source used.
var sameTypes = [][]string{{"int32_t", "int"}, {"int64_t", "long int", "long"}, {"uint32_t", "unsigned int"}, {"uint64_t", "long unsigned int", "unsigned long"}, {"int16_t", "short int", "short"},
	{"uint16_t", "short unsigned int", "unsigned short"}, {"int8_t", "signed char"}, {"uint8_t", "unsigned char"}, {"bool", "_Bool"}}

func alike(own, want string) bool {
	plain := func(t string) string {
		t = strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(t, "const ", ""), " *", "*"))
		for _, names := range sameTypes {
			if slices.Contains(names, t) {
				return names[0]
			}
		}
		return t
	}
	return plain(own) == plain(want)
}
