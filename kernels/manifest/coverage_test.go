package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// Secret ranges that leave out much of the limits are worth a warning, dim by dim, with what
// to write.
func TestWarnings(t *testing.T) {
	const text = `version: 1
name: k
mode: cpu
arguments: [{name: y, dtype: f32, access: out, shape: [N]}]
reference: {source: r.c, entry: r}
tolerance: {abs: 1}
shapes: {small: {N: 1000, D: 64}}
limits: LIMITS
secret: SECRET
source: k.c
entry: k
`
	const beyond = ": beyond it nothing checks whether the kernel is right or fast (write secret: "
	for _, c := range []struct{ limits, secret, want string }{
		{"{N: 1..1000000}", "{N: 1..10000}", ""},
		{"{N: 1..1000000}", "{N: 1..3000}", "secret.N: covers 57% of limits.N 1..1000000, and 67% is required" + beyond + "{N: 1..10000} or more, or narrow the limits)"},
		{"{N: 1..1000000}", "{N: 900000..1000000}", "secret.N: covers 0% of limits.N 1..1000000, and 67% is required" + beyond + "{N: 1..10000} or more, or narrow the limits)"},
		{"{N: 64..65536}", "{N: 64..6500}", "secret.N: covers 66% of limits.N 64..65536, and 67% is required" + beyond + "{N: 64..6600} or more, or narrow the limits)"},
		{"{N: 64..65536}", "{N: 64..6600}", ""},
		{"{N: 1..1000000}", "{}", "limits: there is no secret, so the kernel is only ever run on its named shapes (write e.g. secret: {N: 1..1000000}, or less where that takes too long)"},
		{"{N: 1000, D: 32|64|128}", "{D: 64}", "secret.D: covers 33% of limits.D 32|64|128, and 67% is required" + beyond + "{D: 32|64|128}, or narrow the limits)"},
		{"{N: 1000, D: 32|64|128}", "{D: 64|128}", ""},
		{"{N: 1..5000, D: 64}", "{D: 64}", "secret: has no N, which is always 1000: that covers 0% of limits.N 1..5000, and 67% is required" + beyond + "{N: 1..300} or more, or narrow the limits)"},
		{"{}", "{N: 1..3}", ""},
	} {
		m, err := Parse("kernel.yaml", []byte(strings.NewReplacer("LIMITS", c.limits, "SECRET", c.secret).Replace(text)))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, w := range m.Warnings() {
			all = append(all, fmt.Sprintf("%s: %s", strings.Join(w.Field, "."), w.Text))
		}
		if got := strings.Join(all, "\n"); got != c.want {
			t.Errorf("%s of %s:\n%s\nwant\n%s", c.secret, c.limits, got, c.want)
		}
	}
}
