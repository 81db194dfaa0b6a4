package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Compare returns how the new manifest differs from the old in the problem: in what is asked of a
// kernel and how that is judged. For most fields nobody can say whether a change loosens the
// problem. Fields for people and rivals decide nothing, and the implementation belongs to the
// author, except named variants, which a policy may use.
func Compare(old, new *Manifest, variants ...string) compare.List {
	var l compare.List
	compareFields(&l, old, new)
	compare.Less(&l, "tolerance.abs", old.Tolerance.Abs, new.Tolerance.Abs)
	compare.Less(&l, "tolerance.rel", old.Tolerance.Rel, new.Tolerance.Rel)
	compareArguments(&l, old, new)
	compareRecorded(&l, old, new)
	compareShapes(&l, old.Shapes, new.Shapes)
	compareRanges(&l, "limits", old.Limits, new.Limits)
	compareRanges(&l, "secret", old.Secret, new.Secret)
	compareVariants(&l, old, new, variants)
	return l
}

// compareFields compares the fields that have a single value.
func compareFields(l *compare.List, old, new *Manifest) {
	fields := []struct {
		path     string
		old, new any
	}{
		{"version", old.Version, new.Version}, {"name", old.Name, new.Name}, {"mode", old.Mode, new.Mode}, {"threads", old.Threads, new.Threads},
		{"work", old.Work, new.Work}, {"weights", old.Weights, new.Weights}, {"reference", old.Reference, new.Reference}, {"command", old.Command, new.Command},
	}
	for _, f := range fields {
		l.Unknown(f.path, written(f.old), written(f.new))
	}
	if old.Mode == ModeCommand || new.Mode == ModeCommand { // what they leave out is the harness
		l.Unknown("sources", written(old.Sources), written(new.Sources))
	}
}

// compareArguments compares each argument by its name, and its position.
func compareArguments(l *compare.List, old, new *Manifest) {
	text := func(m *Manifest, name string) string {
		if a, ok := m.argument(name); ok {
			return written(*a)
		}
		return compare.None
	}
	were, are := old.argumentNames(), new.argumentNames()
	added := slices.DeleteFunc(slices.Clone(are), func(name string) bool { return slices.Contains(were, name) })
	for _, name := range slices.Concat(were, added) {
		l.Unknown("arguments["+name+"]", text(old, name), text(new, name))
	}
	if len(were) == len(are) {
		l.Unknown("arguments", were, are)
	}
}

// compareRecorded compares each recording by its name. Nobody can say whether other inputs are easier.
func compareRecorded(l *compare.List, old, new *Manifest) {
	text := func(m *Manifest, name string) string { return cmp.Or(recordedText(m, name), compare.None) }
	for _, r := range old.Recorded {
		l.Unknown("recorded."+r.Name, text(old, r.Name), text(new, r.Name))
	}
	for _, r := range new.Recorded {
		if recordedText(old, r.Name) == "" {
			l.Unknown("recorded."+r.Name, compare.None, text(new, r.Name))
		}
	}
}

// compareShapes treats a removed shape as looser. An added shape has an unknown effect: a policy
// may time all shapes, or the first, and each counts in the proof.
func compareShapes(l *compare.List, old, new Shapes) {
	for i, s := range old {
		at := slices.IndexFunc(new, func(n Shape) bool { return n.Name == s.Name })
		switch path := "shapes." + s.Name; {
		case at < 0:
			l.Add(path, s.Dims.String(), compare.None, compare.Loosens)
		default:
			l.Unknown(path, s.Dims.String(), new[at].Dims.String())
		}
		if i == 0 && len(new) > 0 && new[0].Name != s.Name {
			l.Unknown("shapes (the first)", s.Name, new[0].Name)
		}
	}
	for _, s := range new {
		if !slices.ContainsFunc(old, func(o Shape) bool { return o.Name == s.Name }) {
			l.Add("shapes."+s.Name, compare.None, s.Dims.String(), compare.Changes)
		}
	}
}

// compareRanges treats fewer values, or no secret range, as looser.
func compareRanges(l *compare.List, path string, old, new map[string]Range) {
	show := func(r Range) string { return cmp.Or(r.String(), compare.None) }
	dims := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(new))
	slices.Sort(dims)
	for _, dim := range slices.Compact(dims) {
		was, wasThere := old[dim]
		is, isThere := new[dim]
		milder := wasThere && isThere && is.within(was) && !was.within(is) ||
			path == "limits" && !wasThere || path == "secret" && !isThere
		if milder {
			l.Add(path+"."+dim, show(was), show(is), compare.Loosens)
			continue
		}
		l.Unknown(path+"."+dim, show(was), show(is))
	}
}

// compareVariants compares everything that the named variants are built and launched by.
func compareVariants(l *compare.List, old, new *Manifest, names []string) {
	text := func(m *Manifest, name string) string {
		if _, err := m.Variant(name); err == nil {
			return m.Recipe(name)
		}
		return compare.None
	}
	for _, name := range names {
		l.Unknown("variants."+name, text(old, name), text(new, name))
	}
}

// forPeople lists the fields that decide nothing.
var forPeople = []string{"description", "lesson"}

// unbraced is what stands in a mapping that another one takes in.
func unbraced(mapping string) []string {
	if inner := strings.TrimSuffix(strings.TrimPrefix(mapping, "{"), "}"); inner != "" {
		return []string{inner}
	}
	return nil
}

// written returns a value as a manifest would have it.
func written(v any) string {
	if s, ok := v.(fmt.Stringer); ok && !reflect.ValueOf(v).IsZero() {
		return s.String()
	}
	r := reflect.ValueOf(v)
	var parts []string
	switch r.Kind() {
	case reflect.Pointer:
		if r.IsNil() {
			return compare.None
		}
		return written(r.Elem().Interface())
	case reflect.Slice:
		for i := range r.Len() {
			parts = append(parts, written(r.Index(i).Interface()))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(r.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			parts = append(parts, key.String()+": "+written(r.MapIndex(key).Interface()))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Struct:
		for i := range r.NumField() {
			name := r.Type().Field(i).Tag.Get("yaml")
			if r.Type().Field(i).Anonymous {
				parts = append(parts, unbraced(written(r.Field(i).Interface()))...)
				continue
			}
			if r.Type().Field(i).Tag.Get("half") == strict.HalfImplementation {
				continue // of an argument, and reported with the problem
			}
			if name != "" && name != "-" && !slices.Contains(forPeople, name) && !r.Field(i).IsZero() {
				parts = append(parts, name+": "+written(r.Field(i).Interface()))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.String:
		if text := r.String(); strings.ContainsAny(text, ",:{}[]\" ") {
			return fmt.Sprintf("%q", text)
		}
	}
	return fmt.Sprint(v)
}
