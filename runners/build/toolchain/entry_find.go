package toolchain

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// findEntries finds the symbol of every entry, once. From here on a kernel is known by its symbol.
func (c *Cubin) findEntries(b NVCCBuild, f *cubinFile) error {
	entries, err := b.entries()
	if err != nil {
		return err
	}
	symbols := f.entries()
	if len(symbols) > entryname.MaxKernels {
		return c.refuse("%s has %d kernels, over the limit of %d: compile fewer from one source", b.Source, len(symbols), entryname.MaxKernels)
	}
	names := mapped(symbols, entryname.Parse)
	var byMarker map[int]entryname.Name
	if b.markers != "" {
		names, byMarker = marked(names)
	}
	lines := entryLines(b, entries)
	for i, e := range entries {
		found := entryname.Match(e, names)
		if n, ok := byMarker[i]; ok && len(found) != 1 {
			found = []entryname.Name{n}
		}
		switch {
		case len(found) == 0:
			return &absentEntry{c.refuse("%s", c.missing(b, b.Entries[i], e, names))}
		case len(found) > 1 && e.Plain():
			return c.refuse("%s has %d kernels %s: write one of them as the entry: %s", b.Source, len(found), entryname.Quote(b.Entries[i]), entryname.List(e, found))
		case len(found) > 1:
			return &absentEntry{c.refuse("%s has %d kernels that %s may mean: write one of them as the entry: %s", b.Source, len(found), entryname.Quote(b.Entries[i]), entryname.List(e, found))}
		}
		if len(found[0].Symbol) > entryname.MaxMangled {
			return c.refuse("%s calls the kernel %s by a name of %d bytes, over the limit of %d: use fewer template arguments", b.Source, entryname.Quote(b.Entries[i]), len(found[0].Symbol), entryname.MaxMangled)
		}
		params, err := f.params(found[0].Symbol)
		if err != nil {
			return err
		}
		c.Kernels = append(c.Kernels, Kernel{Symbol: found[0].Symbol, Name: found[0].Text, Params: params, CodeSize: f.codeSize(found[0].Symbol), Line: lines[i]})
	}
	return nil
}

func (c *Cubin) missing(b NVCCBuild, asked string, e manifest.Entry, names []entryname.Name) string {
	switch {
	case len(names) == 0 && e.Untemplated():
		return fmt.Sprintf("%s has no kernel at all: define %s as a __global__ function; if it is a template, write the entry with its arguments, as in %s<64, true>", b.Source, entryname.Quote(asked), e.Name())
	case len(names) == 0:
		return fmt.Sprintf("%s has no kernel at all: define %s as a __global__ function", b.Source, entryname.Quote(asked))
	}
	return fmt.Sprintf("%s has no kernel %s: write the entry as one of these, or define it: %s", b.Source, entryname.Quote(asked), entryname.List(e, names))
}

// An absentEntry is the refusal of a source that has no kernel of this name. A build with markers
// may still find it.
type absentEntry struct{ refusal *output.CompileError }

func (a *absentEntry) Error() string { return a.refusal.Error() }

// explain returns how the build with markers ended. If the compiler's only complaint about the
// author's source is that the name does not exist or is ambiguous, the result of the first build
// says more.
func (a *absentEntry) explain(err error) error {
	refusal, ok := errors.AsType[*output.CompileError](err)
	if !ok {
		return err
	}
	i := slices.IndexFunc(refusal.Diagnostics, output.IsError)
	if i < 0 || filepath.Base(refusal.Diagnostics[i].File) != markerFileName {
		return refusal
	}
	a.refusal.Summary += " (the compiler: " + refusal.Diagnostics[i].Message + ")"
	return a.refusal
}
