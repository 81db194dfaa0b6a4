package pages_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// oneChange is a folder of results with one change on top.
type oneChange struct {
	*pages.Folder
	state    *change.State
	verdicts map[string]string
}

// show replaces the change. Its verdicts are stored under the names of their jobs.
func (c *oneChange) show(t *testing.T, view present.View) {
	t.Helper()
	c.state, c.verdicts = view.State, map[string]string{}
	for i, run := range view.State.Runs {
		c.verdicts[run.Job] = marshalled(t, view.Verdicts[run.Job])
		view.State.Runs[i].Result.Verdict = run.Job
	}
}

func (c *oneChange) Change(context.Context, change.ID) (*change.State, error) { return c.state, nil }

func (c *oneChange) Blob(ctx context.Context, name string) ([]byte, error) {
	if text, ok := c.verdicts[name]; ok {
		return []byte(text), nil
	}
	return c.Folder.Blob(ctx, name)
}

// A deviceRow is what the matrix of a change says of one device.
type deviceRow struct{ device, verdict, found, missing string }

// devicesIn returns the rows of the table of devices.
func devicesIn(tables []grid) []deviceRow {
	var rows []deviceRow
	for _, g := range tables {
		at := func(title string) int {
			return slices.IndexFunc(g.head, func(h string) bool { return strings.TrimSpace(h) == title })
		}
		device, verdict, found, missing := at("device"), at("verdict"), at("found"), at("what is missing")
		if min(device, verdict, found, missing) < 0 {
			continue
		}
		for _, r := range g.rows {
			if len(r) == len(g.head) {
				rows = append(rows, deviceRow{oneLine(r[device]), signs.ReplaceAllString(oneLine(r[verdict]), ""), oneLine(r[found]), strings.TrimPrefix(oneLine(r[missing]), "–")})
			}
		}
	}
	return rows
}

var signs = regexp.MustCompile(`^[^A-Za-z]+`)

// holdDevices checks that the comment, the page and the API of a change say the same of each device: what the line of the terminal
// says, and the first of the steps to pass.
func holdDevices(t *testing.T, count *tally, p piece, all truth, r reader, comment, page, api string) {
	t.Helper()
	v := *p.verdict
	var model struct{ Devices []pages.DeviceRun }
	if err := json.Unmarshal([]byte(api), &model); err != nil {
		t.Fatal(err)
	}
	var programs []deviceRow
	for _, d := range model.Devices {
		programs = append(programs, deviceRow{d.Device, string(d.Outcome) + " " + string(d.Reason), d.Found, d.Missing})
	}
	for form, rows := range map[string][]deviceRow{
		"the comment on two devices": devicesIn(markdownTables(comment)), "the devices of a change": devicesIn(htmlTables(page)), "the API of a change": programs,
	} {
		if len(rows) != 2 {
			t.Errorf("%s: %s has the devices %v", p.name, form, rows)
			continue
		}
		for i, row := range rows {
			v.Provenance.Label = []string{"box1", "box2"}[i]
			_, found, _ := strings.Cut(report.OneLine(&v), " "+report.Plain(v.Name())+": ")
			missing := ""
			if steps := report.ToPass(&v); v.Outcome != gates.Pass && len(steps) > 0 {
				missing = steps[0]
			}
			want := deviceRow{v.Provenance.Label, oneLine(string(v.Outcome) + " " + string(v.Reason)), sameWords(found), sameWords(missing)}
			row.verdict = oneLine(strings.NewReplacer("(", "", ")", "").Replace(row.verdict)) // the page writes the reason as a note
			row.found, row.missing = sameWords(row.found), sameWords(row.missing)
			if row != want && !(strings.HasSuffix(row.missing, "…") && strings.HasPrefix(want.missing, strings.TrimSuffix(row.missing, "…"))) {
				t.Errorf("%s: %s says\n%q, and not\n%q", p.name, form, row, want)
			}
		}
		count.hold(t, form+", by device", p, all, r.found(rows))
	}
	count.hold(t, "the API of a change", p, all, inJSON(t, api, r.names), allFigures...)
}

// foundText matches a figure with its shape, unless the line was cut within the name.
var foundText = regexp.MustCompile(`^` + gainPattern + `(?: \[` + gainPattern + `, ` + gainPattern + `\])? on ([^…]+?)(?:, goal.*)?$`)

// found is the figures that the verdicts of some devices hang on.
func (r reader) found(rows []deviceRow) []mention {
	var list []mention
	for _, row := range rows {
		m := foundText.FindStringSubmatch(sameWords(row.found))
		if m == nil {
			continue
		}
		first, last := boundsOf(m[1], m[2], m[3])
		for kind, text := range map[kindOfFigure]string{speedup: m[1], lower: first, upper: last} {
			if text != "" {
				list = append(list, mention{nameIn(m[4], r.names), kind, text})
			}
		}
	}
	return list
}

// sameWords is a text as it reads in every form.
func sameWords(text string) string { return oneLine(htmlText(markup.Replace(text))) }
