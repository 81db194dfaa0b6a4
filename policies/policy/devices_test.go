package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// onDevices is the good policy with different devices.
func onDevices(devices string) string {
	return strings.Replace(good, "devices: [l4]", "devices: "+devices, 1)
}

func TestDevices(t *testing.T) {
	for text, want := range map[string]policy.Devices{
		"[l4, h200]":                      {Prefer: []string{"l4", "h200"}},
		"null":                            {},
		"{all: [l4, h200]}":               {Block: []string{"l4", "h200"}},
		"{block: [l4], inform: [h200]}":   {Block: []string{"l4"}, Inform: []string{"h200"}},
		"{inform: [a, b], block: [c]}":    {Block: []string{"c"}, Inform: []string{"a", "b"}},
		"{all: [l4]}":                     {Block: []string{"l4"}},
		"{block: [l4, h200]}":             {Block: []string{"l4", "h200"}},
		"{all: [a, b, c, d, e, f, g, h]}": {Block: strings.Split("abcdefgh", "")},
	} {
		p := parse(t, onDevices(text))
		if diff := cmp.Diff(want, p.Devices); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if again := parse(t, onDevices(strings.ReplaceAll(p.Devices.String(), compare.None, "null"))); !cmp.Equal(want, again.Devices) {
			t.Errorf("%s is written as %s", text, p.Devices)
		}
	}
	d := parse(t, onDevices("{block: [l4], inform: [h200]}")).Devices
	if got := strings.Join(d.Each(), " "); got != "l4 h200" || d.Informs("l4") || !d.Informs("h200") || d.Informs("") {
		t.Errorf("each %s, and h200 informs: %v", got, d.Informs("h200"))
	}
	if each := (policy.Devices{Prefer: []string{"l4", "h200"}}).Each(); len(each) != 0 {
		t.Errorf("an order of preference asks for a run on each of %q", each)
	}
}

func TestMistakesInDevices(t *testing.T) {
	for text, want := range map[string]string{
		"l4":                                 `3:10: devices: "l4" is not a list of devices (write [l4] for one runner, or {all: [l4, h200]} for a run on each)`,
		"{}":                                 `3:10: devices: no device blocks, so a change would pass whatever is measured (name at least one under block, or use enforce: shadow in the rules)`,
		"{inform: [h200]}":                   `3:10: devices: no device blocks, so a change would pass whatever is measured (name at least one under block, or use enforce: shadow in the rules)`,
		"{all: []}":                          `3:16: devices.all: is empty (name at least one device, or delete it)`,
		"{all: null}":                        `3:16: devices.all: is empty (write a list: [a, b])`,
		"{block: [l4], inform: []}":          `3:32: devices.inform: is empty (name at least one device, or delete it)`,
		"{all: [l4, l4]}":                    `3:21: devices.all[1]: "l4" is named twice (delete one)`,
		"{block: [l4, h200], inform: [l4]}":  `3:39: devices.inform[0]: "l4" is in devices.block too (a device either blocks or informs: delete one)`,
		"{all: [l4], block: [h200]}":         `3:29: devices.block: all and block mean the same (write one list)`,
		"{all: [l4], inform: [h200]}":        `3:16: devices.all: not all devices decide if some inform (write block in place of all)`,
		"{all: [an l4]}":                     `3:17: devices.all[0]: "an l4" is not a runner's label (write letters, digits, '_' and '-')`,
		"{all: [l4], warn: [h200]}":          `3:22: devices.warn: unknown field (known here: all, block, inform)`,
		"{all: [a, b, c, d, e, f, g, h, i]}": `3:10: devices: has 9 devices (write at most 8)`,
		"{all: l4}":                          `3:16: devices.all: is "l4" (write a list: [a, b])`,
	} {
		if got := mistakes(t, "p.yaml", onDevices(text)); len(got) != 1 || got[0] != "p.yaml:"+want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, "p.yaml:"+want)
		}
	}
}

// TestCompareDevices checks that a device that does not decide any more loosens the policy: it is
// dropped, it only informs, or one of several is enough.
func TestCompareDevices(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"{all: [l4, h200]}", "{all: [h200, l4]}", ""},
		{"{all: [l4, h200]}", "{block: [l4, h200]}", ""},
		{"{all: [l4, h200]}", "{all: [l4]}", "loosens devices.block"},
		{"{all: [l4]}", "{all: [l4, h200]}", "tightens devices.block"},
		{"{all: [l4, h200]}", "{all: [l4, a100]}", "changes devices.block"},
		{"{all: [l4, h200]}", "{block: [l4], inform: [h200]}", "loosens devices.block, tightens devices.inform"},
		{"{block: [l4], inform: [h200]}", "{all: [l4, h200]}", "tightens devices.block, changes devices.inform"},
		{"{block: [l4], inform: [h200]}", "{all: [l4]}", "changes devices.inform"},
		{"{all: [l4]}", "{block: [l4], inform: [h200]}", "tightens devices.inform"},
		{"[l4]", "{all: [l4, h200]}", "tightens devices"},
		{"[l4, h200]", "{all: [l4, h200]}", "tightens devices"},
		{"[l4, a100]", "{all: [l4, h200]}", "changes devices"},
		{"null", "{all: [l4, h200]}", "changes devices"},
		{"{all: [l4, h200]}", "[l4]", "loosens devices"},
		{"{all: [l4, h200]}", "[l4, h200]", "loosens devices"},
		{"{all: [l4, h200]}", "[a100]", "changes devices"},
		{"{all: [l4, h200]}", "null", "changes devices"},
		{"{all: [l4]}", "[l4]", "changes devices"},
	} {
		var got []string
		list := policy.Compare(parse(t, onDevices(c.old)), parse(t, onDevices(c.new)))
		for _, d := range list {
			got = append(got, string(d.Direction)+" "+d.Path)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s to %s: %q, want %q", c.old, c.new, got, c.want)
		}
		if loosens := strings.Contains(c.want, "loosens") || strings.Contains(c.want, "changes"); list.Loosens() != loosens {
			t.Errorf("%s to %s: loosens: %v", c.old, c.new, list.Loosens())
		}
	}
}

func TestExplainDevices(t *testing.T) {
	text := parse(t, onDevices("{block: [l4, a100], inform: [h200]}")).Explain("p.yaml", policy.Change{})
	const want = "\nIt is measured on l4, a100, h200, with a verdict for each device. It passes if it passes on l4 and a100. The verdict on h200 is shown and blocks nothing.\n"
	if !strings.HasSuffix(text, want) {
		t.Errorf("got:\n%s", text)
	}
	if text := parse(t, good).Explain("p.yaml", policy.Change{}); strings.Contains(text, "device") {
		t.Errorf("one device is explained:\n%s", text)
	}
}
