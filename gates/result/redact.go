package result

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// hidden replaces a text that describes secret cases.
const hidden = "Secret cases decide this. Their sizes, seeds and values are not shown, and every claim draws new ones."

// Redact returns the verdict without what an untrusted author must not learn about secret cases:
// their sizes, seeds, distributions and errors. What remains is how many of them failed. The verdict
// itself does not change.
//
// Every text that names a secret size or seed is replaced as a whole, whichever gate wrote it, so
// that a new sentence of a gate cannot tell more than an old one.
func Redact(v *gates.Verdict, e *gates.Evidence) *gates.Verdict {
	names := secretNames(v, e)
	out := copyOf(v, func(text string) string {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) }) {
			return hidden
		}
		return text
	})
	var cases []gates.CaseRow
	for _, row := range v.Correctness {
		if !row.Secret {
			cases = append(cases, row)
			continue
		}
		i := slices.IndexFunc(cases, func(r gates.CaseRow) bool { return r.Secret })
		if i < 0 {
			cases, i = append(cases, gates.CaseRow{Shape: Secret, Secret: true}), len(cases)
		}
		cases[i].Passed += row.Passed
		cases[i].Total += row.Total
		cases[i].Existing += row.Existing
	}
	out.Correctness = cases
	out.Comparisons = slices.DeleteFunc(out.Comparisons, func(c gates.Comparison) bool { return c.Secret })
	out.Unjudged, out.Unsteady, out.Why = nil, nil, publicWhys(v, out, names)
	return out
}

// publicWhys leaves out why the times of a secret size differ: what was counted there tells the size.
func publicWhys(v, out *gates.Verdict, secret []string) []gates.Why {
	var all []gates.Why
	for i, w := range v.Why {
		if !slices.Contains(secret, w.Shape) {
			all = append(all, out.Why[i])
		}
	}
	return all
}

// secretNames lists every spelling of the secret inputs, as texts have them.
func secretNames(v *gates.Verdict, e *gates.Evidence) []string {
	var names []string
	size := func(dims string) {
		if dims != "" {
			names = append(names, dims, strings.ReplaceAll(dims, " ", ","), strings.ReplaceAll(dims, " ", ", "))
		}
	}
	for _, row := range v.Correctness {
		if row.Secret {
			size(row.Dims)
			names = append(names, row.Shape)
		}
	}
	for _, c := range v.Comparisons {
		if c.Secret {
			size(c.Dims)
			names = append(names, c.Label())
		}
	}
	if e == nil {
		return compact(names)
	}
	input := func(i gates.Input) {
		if i.Secret {
			size(i.Dims)
			names = append(names, i.Shape, fmt.Sprintf("seed %d", i.Seed), strconv.FormatUint(i.Seed, 10))
		}
	}
	for _, s := range e.Shapes {
		if s.Secret {
			size(s.Dims)
			names = append(names, s.Name)
		}
	}
	if e.Correctness != nil {
		for _, k := range e.Correctness.Cases {
			input(k.Input)
		}
	}
	if e.Sanitize != nil {
		for _, k := range e.Sanitize.Cases {
			input(k)
		}
	}
	return compact(names)
}

// compact leaves out what is too short to be told from other text: a seed of one digit.
func compact(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return len(name) < 3 })
}

// copyOf copies a verdict with every text changed.
func copyOf(v *gates.Verdict, change func(string) string) *gates.Verdict {
	data, err := json.Marshal(v)
	var tree any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err == nil {
		data, err = json.Marshal(each(tree, change))
	}
	out := new(gates.Verdict)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil { // a verdict is made of texts and finite numbers
		return &gates.Verdict{Schema: v.Schema, Kernel: v.Kernel, Outcome: v.Outcome, Reason: v.Reason, Summary: hidden}
	}
	return out
}

func each(tree any, change func(string) string) any {
	switch node := tree.(type) {
	case string:
		return change(node)
	case []any:
		for i := range node {
			node[i] = each(node[i], change)
		}
	case map[string]any:
		for key := range node {
			node[key] = each(node[key], change)
		}
	}
	return tree
}

// Redacted returns the result of a verdict for an untrusted author: see [Redact]. Failures on secret
// cases have a class and a count.
func Redacted(v *gates.Verdict, e *gates.Evidence) *Result {
	whole := Of(v, e)
	r := Of(Redact(v, e), nil)
	r.Code, r.Failures = whole.Code, nil
	for _, f := range whole.Failures {
		if f.Shape == Secret {
			f.FirstBad = nil
		} else if f.FirstBad != nil && secretText(f.FirstBad.Text, v, e) {
			f.FirstBad = &FirstBad{Text: hidden}
		}
		r.Failures = append(r.Failures, f)
	}
	r.ToPass = compactTexts(r.ToPass)
	return r
}

func secretText(text string, v *gates.Verdict, e *gates.Evidence) bool {
	return slices.ContainsFunc(secretNames(v, e), func(name string) bool { return strings.Contains(text, name) })
}

// compactTexts leaves out texts that are repeated.
func compactTexts(all []string) []string {
	var out []string
	for _, text := range all {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
