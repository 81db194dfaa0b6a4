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
	v := reflect.ValueOf(c)
	for _, k := range Keys() {
		text := ""
		switch value := v.FieldByIndex(k.index).Interface().(type) {
		case []RemoteRunner:
			for i, r := range value {
				if _, err := fmt.Fprintf(w, "%-28s %s: labels %s, token in %s\n", fmt.Sprintf("%s[%d]", k.Path, i), r.Name, strings.Join(r.Labels, ", "), r.TokenFile); err != nil {
					return err
				}
			}
			continue
		case []Limit:
			var parts []string
			for _, l := range value {
				parts = append(parts, l.String())
			}
			text = strings.Join(parts, "; ")
		case []Notify:
			for i, n := range value {
				if _, err := fmt.Fprintf(w, "%-28s %s: %s, address in %s\n", fmt.Sprintf("%s[%d]", k.Path, i), n.Name, cmp.Or(n.Form, "plain"), n.URLFile); err != nil {
					return err
				}
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
			text = unset(k.Path)
		}
		if _, err := fmt.Fprintf(w, "%-28s %s\n", k.Path, text); err != nil {
			return err
		}
	}
	return nil
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

func unset(path string) string {
	switch path {
	case "nats":
		return "(embedded)"
	case "runner.labels":
		return "(found out at start)"
	case "runner.socket":
		return "(runner.sock in the data folder)"
	case "github.api_url", "github.git_url":
		return "(github.com)"
	case "telemetry.endpoint":
		return "(nobody)"
	}
	return "-"
}
