package cpu

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// The kernel's parameters are also compared with the manifest, but less strictly than the
// reference's: a source may take half floats as _Float16 or as bits, and a struct under any name.
// Only clear mistakes are refused: a different number of parameters, a scalar of a different size
// or kind, or an array of doubles for one of floats.

// checkKernel returns how the candidate's parameters differ from what the manifest passes; "" if
// that is not certain. An error means a mistake of the base: the merged kernel differs in the same
// way.
func (w *Worker) checkKernel(ctx context.Context, name string, side runners.Side, variant manifest.Variant) (string, error) {
	m := w.job.Of(side)
	wrong, err := w.unmeant(ctx, name, side, variant)
	if err != nil || wrong == "" {
		return "", err
	}
	advice := fmt.Sprintf("declare it as %s, or correct the manifest", strings.TrimSuffix(m.CPrototype(m.Entry), ";"))
	if before := w.job.Baseline; before != nil && before.Variant != manifest.Choice {
		was, err := w.job.Of(*before).Variant(before.Variant)
		if err != nil {
			return "", err
		}
		if merged, err := w.unmeant(ctx, name, *before, was); err != nil || merged == wrong {
			return "", cmp.Or(err, runners.SetupErrorf("the kernel %s does not take what the manifest passes, neither at the base nor at the head: %s; %s", m.Entry, wrong, advice))
		}
	}
	return fmt.Sprintf("%s: the kernel %s does not take what the manifest passes: %s; %s", variant.Source, m.Entry, wrong, advice), nil
}

// unmeant returns the first parameter of a side that cannot match what is passed.
func (w *Worker) unmeant(ctx context.Context, name string, side runners.Side, variant manifest.Variant) (string, error) {
	m := w.job.Of(side)
	entry, err := manifest.ParseEntry(m.Entry)
	params := m.CallSignature()
	if err != nil || !entry.Plain() || params == nil {
		return "", nil // an instance of a template, one of several functions, or structs
	}
	flags := slices.Concat(m.IncludeFlags(), m.CompilerFlags(side.Variant), m.Defines(side.Variant), openMP(m))
	q := typeQuery{name: name, dir: side.Dir, source: m.SourceFile(variant), entry: entry, flags: compileOnly(flags)}
	refusal, err := w.tryType(ctx, q, params, asDeclared)
	if err != nil || refusal == nil {
		return "", err
	}
	own, ok := parametersIn(refusal.Log)
	if !ok {
		return "", nil
	}
	return cannotBeMeant(own, params), nil
}

// known matches the type of a function pointer in a compiler's message. The resolved type follows
// "aka".
var known = regexp.MustCompile(`(?:from incompatible pointer type|invalid conversion from|with an expression of type) ['‘]void ?\(\*\)\(([^'’]*)\)['’](?: \{aka ['‘]void ?\(\*\)\(([^'’]*)\)['’]\})?`)

// parametersIn returns the types of a function's parameters from a compiler's message.
func parametersIn(log string) (types []string, ok bool) {
	found := known.FindStringSubmatch(log)
	if found == nil {
		return nil, false
	}
	list := found[1]
	if found[2] != "" {
		list = found[2]
	}
	if strings.ContainsAny(list, "(){}<>") || strings.Contains(list, "...") {
		return nil, false // functions, templates and lists without an end
	}
	if list == "void" || list == "" {
		return nil, true
	}
	for t := range strings.SplitSeq(list, ",") {
		types = append(types, strings.TrimSpace(t))
	}
	return types, true
}

// A number is a type of C that is passed by value.
type number struct {
	bytes int
	float bool
}

var numbers = map[string]number{
	"float": {4, true}, "double": {8, true}, "int": {4, false}, "unsigned int": {4, false}, "int32_t": {4, false}, "uint32_t": {4, false},
	"long": {8, false}, "long int": {8, false}, "unsigned long": {8, false}, "long unsigned int": {8, false}, "long long": {8, false}, "long long int": {8, false}, "unsigned long long": {8, false},
	"long long unsigned int": {8, false}, "int64_t": {8, false}, "uint64_t": {8, false},
}

// cannotBeMeant finds the first parameter whose type cannot match what is passed.
func cannotBeMeant(own []string, params []manifest.CParameter) string {
	for i := range max(len(own), len(params)) {
		switch {
		case i >= len(own):
			return fmt.Sprintf("it has %d parameters and the manifest %d; the first that is missing is %s (%s, %s)", len(own), len(params), params[i].Name, params[i].Type, params[i].Field)
		case i >= len(params):
			return fmt.Sprintf("it has %d parameters and the manifest %d; its parameter %d, %s, is passed nothing", len(own), len(params), i+1, own[i])
		case !plausible(own[i], params[i].Type):
			return fmt.Sprintf("its parameter %d is %s, and %s (%s) is %s", i+1, own[i], params[i].Name, params[i].Field, params[i].Type)
		}
	}
	return ""
}

// plausible reports whether a parameter may take what is passed.
func plausible(own, want string) bool {
	takes, pointer := pointee(own)
	passes, address := pointee(want)
	was, isNumber := numbers[takes]
	is, asNumber := numbers[passes]
	switch {
	case pointer != address:
		return !isNumber && !pointer || !asNumber && !address // a struct by value may be anything
	case !isNumber || !asNumber:
		return true
	case pointer:
		return !was.float || !is.float || was == is // integers may be the bits of anything
	}
	return was == is
}

// pointee returns the type that a type points to, or the type itself, without const.
func pointee(t string) (name string, pointer bool) {
	words := slices.DeleteFunc(strings.Fields(strings.ReplaceAll(t, "*", " * ")), func(word string) bool {
		return word == "const" || word == "restrict" || word == "__restrict" || word == "__restrict__" || word == "volatile"
	})
	name = strings.Join(words, " ")
	return strings.CutSuffix(name, " *")
}
