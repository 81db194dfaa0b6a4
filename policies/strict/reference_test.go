package strict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// An orchard has what references know beyond schemas: defaults, bounds, and mappings at several
// places.
type orchard struct {
	Beds  int             `yaml:"beds" eg:"4" default:"2" bounds:"1 to 9" doc:"How many."`
	Sheds []hut           `yaml:"sheds" eg:"[{roof: flat}]" default:"(none at all)" doc:"One row each."`
	Named map[string]*hut `yaml:"named" eg:"{old: {roof: \"a|b\"}}" doc:"The same by name."`
	Pond  *pond           `yaml:"pond" eg:"none" doc:"Water."`
}

type hut struct {
	Roof  string   `yaml:"roof" required:"true" eg:"> flat" doc:"What keeps it dry."`
	Doors []string `yaml:"doors" eg:"[front]" bounds:"(no two alike)" doc:"Ways in."`
	Paint colour   `yaml:"paint" eg:"red" doc:"Outside."`
}

type pond struct {
	Depth *float64 `yaml:"depth" eg:"0.5" doc:"In metres."`
	Wet   *bool    `yaml:"wet" eg:"true" doc:"No doubt."`
}

func TestReference(t *testing.T) {
	const head = "| key | takes | default | meaning | example |\n| --- | --- | --- | --- | --- |\n"
	const want = "\n## The file\n\n" + head +
		"| `beds` | whole number, 1 to 9 | `2` | How many. | `beds: 4` |\n" +
		"| `sheds` | [list of mappings](#sheds) | none at all | One row each. | `sheds: [{roof: flat}]` |\n" +
		"| `named` | [mapping of names to mappings, or `none`](#sheds) |  | The same by name. | `named: {old: {roof: \"a\\|b\"}}` |\n" +
		"| `pond` | [mapping, or `none`](#pond) |  | Water. | `pond: none` |\n" +
		"\n## `sheds[]`\n\nOne row each.\n\n" + head +
		"| `roof` | text | required | What keeps it dry. | `roof: \"> flat\"` |\n" +
		"| `doors` | list of texts, no two alike |  | Ways in. | `doors: [front]` |\n" +
		"| `paint` | `red`, `green` |  | Outside. | `paint: red` |\n" +
		"\n## `pond`\n\nWater.\n\n" + head +
		"| `depth` | number, or `none` |  | In metres. | `depth: 0.5` |\n" +
		"| `wet` | `true` or `false` |  | No doubt. | `wet: true` |\n"
	if diff := cmp.Diff(want, strict.Reference(orchard{}, nil)); diff != "" {
		t.Error(diff)
	}
}
