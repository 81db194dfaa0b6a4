package policy

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Devices names the runners that measure, by their labels. A list is an order of preference: one
// runner that has any of the labels measures a kernel. A mapping asks for a run of every kernel on
// each device, and every run has its own verdict.
type Devices struct {
	Prefer []string // in order of preference
	Block  []string // a change must pass on each of them
	Inform []string // the verdict is shown, and blocks nothing
}

// eachDevice is the mapping. All is a different word for block.
type eachDevice struct {
	All    []string `yaml:"all" eg:"[l4, h200]" doc:"A change must pass on each of these devices."`
	Block  []string `yaml:"block" eg:"[l4]" doc:"The same as all, for a mapping that also has inform."`
	Inform []string `yaml:"inform" eg:"[h200]" doc:"Devices whose verdict is shown and blocks nothing. A change does not wait for them."`
}

// maxDevices bounds the runs of one kernel.
const maxDevices = 8

// UnmarshalStrict reads both forms.
func (d *Devices) UnmarshalStrict(n *strict.Node) {
	*d = Devices{}
	switch {
	case n.Null():
	case n.List():
		n.Decode(&d.Prefer)
		checkLabels(n, d.Prefer, map[string]string{})
	case n.Mapping():
		d.readEach(n)
	default:
		text, _ := n.Text()
		n.Errorf("%q is not a list of devices (write [l4] for one runner, or {all: [l4, h200]} for a run on each)", text)
	}
}

func (d *Devices) readEach(n *strict.Node) {
	var each eachDevice
	if !n.Decode(&each) {
		return
	}
	seen := map[string]string{}
	for _, list := range []struct {
		key    string
		labels []string
	}{{"all", each.All}, {"block", each.Block}, {"inform", each.Inform}} {
		at := n.Child(list.key)
		if n.Has(list.key) && len(list.labels) == 0 {
			at.Errorf("is empty (name at least one device, or delete it)")
		}
		checkLabels(at, list.labels, seen)
	}
	switch {
	case n.Has("all") && n.Has("block"):
		n.Child("block").Errorf("all and block mean the same (write one list)")
	case n.Has("all") && n.Has("inform"):
		n.Child("all").Errorf("not all devices decide if some inform (write block in place of all)")
	case !n.Has("all") && !n.Has("block"):
		n.Errorf("no device blocks, so a change would pass whatever is measured (name at least one under block, or use enforce: shadow in the rules)")
	case len(each.All)+len(each.Block)+len(each.Inform) > maxDevices:
		n.Errorf("has %d devices (write at most %d)", len(each.All)+len(each.Block)+len(each.Inform), maxDevices)
	}
	d.Block, d.Inform = append(each.All, each.Block...), each.Inform
}

// checkLabels notes in seen under which key each label is.
func checkLabels(n *strict.Node, labels []string, seen map[string]string) {
	strict.Each(n, labels, func(at *strict.Node, label *string) {
		key := n.Path()
		before, twice := seen[*label]
		switch {
		case !ident.IsLabel(*label):
			at.Errorf("%q is not a runner's label (write letters, digits, '_' and '-')", *label)
		case twice && before == key:
			at.Errorf("%q is named twice (delete one)", *label)
		case twice:
			at.Errorf("%q is in %s too (a device either blocks or informs: delete one)", *label, before)
		}
		seen[*label] = key
	})
}

// JSONSchema describes both forms.
func (d *Devices) JSONSchema() map[string]any {
	return map[string]any{"title": "list of labels, or a mapping with all, or with block and inform", "anyOf": []any{
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, strict.MappingSchema[eachDevice](), map[string]any{"type": "null"},
	}}
}

// Each returns the devices that every kernel has a run on, those that block first. It is empty if
// any one runner is enough.
func (d Devices) Each() []string { return slices.Concat(d.Block, d.Inform) }

// First is the first device that blocks; "" where one run for all is enough.
func (d Devices) First() string {
	if len(d.Block) == 0 {
		return ""
	}
	return d.Block[0]
}

// All returns every label that is named.
func (d Devices) All() []string { return slices.Concat(d.Prefer, d.Block, d.Inform) }

// Informs reports whether the verdict on a device blocks nothing.
func (d Devices) Informs(device string) bool { return slices.Contains(d.Inform, device) }

// String returns the value as it is written in a policy.
func (d Devices) String() string {
	list := func(labels []string) string { return "[" + strings.Join(labels, ", ") + "]" }
	switch {
	case len(d.Inform) > 0:
		return "{block: " + list(d.Block) + ", inform: " + list(d.Inform) + "}"
	case len(d.Block) > 0:
		return "{all: " + list(d.Block) + "}"
	case len(d.Prefer) > 0:
		return list(d.Prefer)
	}
	return compare.None
}

// Explain says what the devices ask of a kernel, or "" if one run is enough.
func (d Devices) Explain() string {
	if len(d.Block) == 0 {
		return ""
	}
	text := "It is measured on " + strings.Join(d.Each(), ", ") + ", with a verdict for each device. It passes if it passes on " + strings.Join(d.Block, " and ") + "."
	if len(d.Inform) > 0 {
		text += " The verdict on " + strings.Join(d.Inform, " and ") + " is shown and blocks nothing."
	}
	return text
}

// compareDevices compares which devices must agree. A device that does not block any more, and one
// of several that takes the place of all, loosen.
func compareDevices(l *compare.List, old, new Devices) {
	within := func(some, all []string) bool {
		return !slices.ContainsFunc(some, func(label string) bool { return !slices.Contains(all, label) })
	}
	each, preferred := len(old.Block) > 0, len(new.Prefer) > 0
	switch d := compare.Changes; {
	case each && len(new.Block) > 0:
		compare.Set(l, "devices.block", old.Block, new.Block)
		compareInforming(l, old.Inform, new.Inform)
	case each || len(new.Block) > 0:
		switch {
		case !each && len(old.Prefer) > 0 && within(old.Prefer, new.Block): // it had to pass on one of them
			d = compare.Tightens
		case each && preferred && len(old.Block) > 1 && within(new.Prefer, old.Block):
			d = compare.Loosens
		}
		l.Add("devices", old.String(), new.String(), d)
	default:
		l.Unknown("devices", old.Prefer, new.Prefer)
	}
}

// compareInforming compares devices that block nothing. A new one cannot let a change pass. If one
// is removed, less is known about a change.
func compareInforming(l *compare.List, old, new []string) {
	was, is := Devices{Prefer: old}.String(), Devices{Prefer: new}.String()
	removed := slices.ContainsFunc(old, func(label string) bool { return !slices.Contains(new, label) })
	added := slices.ContainsFunc(new, func(label string) bool { return !slices.Contains(old, label) })
	switch {
	case removed:
		l.Add("devices.inform", was, is, compare.Changes)
	case added:
		l.Add("devices.inform", was, is, compare.Tightens)
	}
}
