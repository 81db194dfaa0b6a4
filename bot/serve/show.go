package serve

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/policies/quantity"
)

// Show prints what was understood. There is no secret in a configuration.
func (c Config) Show(w io.Writer) error {
	var b strings.Builder
	line := func(key, text string) { fmt.Fprintf(&b, "%-28s %s\n", key, text) }
	v := reflect.ValueOf(c)
	for _, k := range Keys() {
		text := ""
		switch value := v.FieldByIndex(k.index).Interface().(type) {
		case []RemoteRunner:
			for i, r := range value {
				line(fmt.Sprintf("%s[%d]", k.Path, i), fmt.Sprintf("%s: labels %s, token in %s", r.Name, strings.Join(r.Labels, ", "), r.TokenFile))
			}
			continue
		case []Limit:
			text = listed(value)
		case []Sweep:
			text = listed(value)
		case []Watch:
			text = listed(value)
		case []Notify:
			for i, n := range value {
				line(fmt.Sprintf("%s[%d]", k.Path, i), fmt.Sprintf("%s: %s, address in %s", n.Name, cmp.Or(n.Form, "plain"), n.URLFile))
			}
			continue
		case map[string]string:
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(value)) {
				parts = append(parts, name+": "+value[name])
			}
			text = strings.Join(parts, ", ")
		case []string:
			text = strings.Join(value, ", ")
		case Words:
			var shown []string
			for _, word := range value {
				shown = append(shown, withoutPassword(word))
			}
			text = strings.Join(shown, ", ")
		case quantity.Duration:
			text = time.Duration(value).String()
		default:
			text = fmt.Sprint(value)
		}
		if text == "" || k.Path == "github.app_id" && text == "0" {
			text = cmp.Or(unset[k.Path], "-")
		}
		line(k.Path, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// unset is what is done about keys that are left out.
var unset = map[string]string{
	"nats":               "(embedded)",
	"runner.labels":      "(found out at start)",
	"runner.socket":      "(runner.sock in the data folder)",
	"github.api_url":     "(github.com)",
	"github.git_url":     "(github.com)",
	"telemetry.endpoint": "(none)",
}

func listed[T fmt.Stringer](all []T) string {
	var parts []string
	for _, one := range all {
		parts = append(parts, one.String())
	}
	return strings.Join(parts, "; ")
}

func (s Sweep) String() string {
	return fmt.Sprintf("%s: %s, every %s, at %s", s.Repository, cmp.Or(strings.Join(s.Kernels, ", "), "all kernels"), s.every(), cmp.Or(s.At, "00:00"))
}

func (w Watch) String() string {
	return fmt.Sprintf("%s, against %s, slower by %s", w.schedule(), w.against(), w.slower())
}

func (l Limit) String() string {
	var parts []string
	if l.GPUMinutes > 0 {
		parts = append(parts, fmt.Sprintf("%d GPU minutes a day", l.GPUMinutes))
	}
	if l.Jobs > 0 {
		parts = append(parts, fmt.Sprintf("%d jobs at once", l.Jobs))
	}
	return l.Repository + ": " + cmp.Or(strings.Join(parts, ", "), "no limit")
}
