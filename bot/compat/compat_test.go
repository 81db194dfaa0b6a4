package compat

import (
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	for program, want := range map[string]string{
		"kernelgate v0.2.0 4f1c0de": "v0.2.0",
		"kernelgate v0.2.0-rc.1":    "v0.2.0-rc.1",
		"v1.0.0":                    "v1.0.0",
		"kernelgate v0.0.0-20261117163205-4f1c0de12345+dirty 4f1c0de+dirty": "v0.0.0-20261117163205-4f1c0de12345+dirty",
		"kernelgate (devel) 4f1c0de":                                        "",
		"kernelgate (unknown build)":                                        "",
		"kernelgate v1.0.0..":                                               "",
		"":                                                                  "",
	} {
		if got := VersionOf(program); got != want {
			t.Errorf("%q: %q, want %q", program, got, want)
		}
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		older bool
	}{
		{"v0.1.0", "v0.2.0", true},
		{"v0.9.0", "v0.10.0", true},
		{"v0.2.0-rc.1", "v0.2.0", true},
		{"v0.2.0", "v0.2.0", false},
		{"v0.2.0+dirty", "v0.2.0", false},
		{"v0.2.0", "v0.1.0", false},
		{"", "v0.1.0", false},
		{"v0.1.0", "", false},
		{"", "", false},
	} {
		if got := Older(c.a, c.b); got != c.older {
			t.Errorf("Older(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

// An older program refuses an event with a field that a newer program has added, and reads the same event without that field.
// A newer program reads an event with a field that was removed since.
func TestDecode(t *testing.T) {
	const old, current, next = "v0.1.0", "v0.2.0", "v0.3.0"
	for name, c := range map[string]struct {
		writer string
		data   string
		says   string // "" if it is read
	}{
		"this version":               {current, `{"a": 1}`, ""},
		"an older version":           {old, `{"a": 1, "gone": 2}`, ""},
		"before versions":            {"", `{"a": 1, "gone": 2}`, ""},
		"newer, with known fields":   {next, `{"a": 1, "in": {"b": 2}}`, ""},
		"newer, with a new field":    {next, `{"a": 1, "new": 2}`, `the field "new" of a stored "judged" event`},
		"newer, with a new one deep": {next, `{"a": 1, "in": {"b": 2, "new": 3}}`, `the field "new" of a stored "judged" event`},
		"newer, not JSON":            {next, `{`, "unexpected"},
	} {
		var into struct {
			A  int
			In struct{ B int }
		}
		err := Writer{Version: c.writer, Reader: current}.Decode("judged", []byte(c.data), &into)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if unknown := strings.HasPrefix(c.says, "the field"); IsUnknown(err) != unknown {
			t.Errorf("%s: unknown is %v", name, IsUnknown(err))
		}
		if err == nil && into.A != 1 {
			t.Errorf("%s: %+v was read", name, into)
		}
	}
}

func TestUnknownSaysWhatToDo(t *testing.T) {
	for want, w := range map[string]Writer{
		"kernelgate v0.2.0 wrote it, and this version, v0.1.0, does not know it: nothing of it was applied (upgrade this bot to v0.2.0 or a later version, or restore the backup of the journal from before the upgrade)": {Version: "v0.2.0", Reader: "v0.1.0"},
		"a newer kernelgate wrote it, and this version does not know it: nothing of it was applied (upgrade this bot to that version or a later one, or restore the backup of the journal from before the upgrade)":       {},
	} {
		if got := w.Unknown("it").Error(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
