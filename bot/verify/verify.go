// Package verify holds what a runner sends against the job that it was given. A
// runner is believed in what it alone can see: times, outputs, what its compiler
// made and what it runs on. Everything else the bot knows itself: which change it is
// and by which rule it is judged, which shapes and cases were asked for, what the
// sides are called and how often may be measured. A runner that says otherwise is
// faulty or lies, and nothing that it says is judged.
package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// Check refuses evidence that is no answer to the job. Of its rounds the first so many
// were measured earlier, and are known to the bot. A fault of the runner's own is an
// answer, whatever else is there: it is never a pass.
func Check(job runners.Job, earlier int, e *gates.Evidence) error {
	if e.Fault != "" {
		return nil
	}
	job.Policy = job.Asked()
	c := checker{job: job, rule: job.Rule(), evidence: e, mode: runners.ModeOf(job.Manifest)}
	for _, check := range []func() error{c.origin, c.facts, c.device, func() error { return c.shapes(earlier) }, c.builds, c.correctness, c.sanitize, func() error { return c.performance(earlier) }, c.energy, c.rest, c.whole} {
		if err := check(); err != nil {
			return fmt.Errorf("the runner's evidence does not answer its job: %w (does the runner have a different version than the server, or is it not trustworthy?)", err)
		}
	}
	return nil
}

// differs says that a field is not what the job has.
func differs(field string, got, want any) error {
	return fmt.Errorf("%s is %.100q, and the job says %.100q", field, text(got), text(want))
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func same(a, b any) bool { return text(a) == text(b) }

// origin keeps figures out that nobody measured for this job.
func (c checker) origin() error {
	e := c.evidence
	switch {
	case len(e.Best) > 0:
		return errors.New("best: a runner does not know what was merged")
	case e.Removed:
		return errors.New("removed: the kernel that was sent is there")
	}
	return nil
}

// facts are the bot's own word on the change. When, where and with what it was measured
// is the runner's.
func (c checker) facts() error {
	e, job := c.evidence, c.job
	if e.Kernel != job.Manifest.Name {
		return differs("kernel", e.Kernel, job.Manifest.Name)
	}
	if e.Mode != string(job.Manifest.Mode) {
		return differs("mode", e.Mode, string(job.Manifest.Mode))
	}
	if want := c.mode.Abilities; !e.Can().Equal(want) {
		return differs("abilities", e.Can(), want)
	}
	want, got := job.Provenance, e.Provenance
	want.Time, want.Host, want.Program, want.Tools = got.Time, got.Host, got.Program, got.Tools
	if !same(got, want) {
		return differs("provenance", got, want)
	}
	if want := job.Weights(); !same(e.Weights, want) {
		return differs("weights", e.Weights, want)
	}
	if !same(e.Change, job.Change) {
		return differs("change", e.Change, job.Change)
	}
	const most = 50 // of the runner's own
	if len(e.Notes) < len(job.Notes) || len(e.Notes) > len(job.Notes)+most || !slices.Equal(e.Notes[:len(job.Notes)], job.Notes) {
		return differs("notes", e.Notes, job.Notes)
	}
	return nil
}

func (c checker) device() error {
	d := c.evidence.Device
	if d.Name == "" || d.Kind == "" {
		return errors.New("device: it has no kind or no name")
	}
	if want := c.mode.Device; want != "" && d.Kind != want {
		return differs("device.kind", d.Kind, want)
	}
	return nil
}

// shapes are the manifest's, with their work: a shape that is not there is not asked
// about, and the work bounds what is believed of a time. The secret one comes last.
func (c checker) shapes(earlier int) error {
	want, err := c.job.ShapesOnRecord()
	if err != nil {
		return err
	}
	named := c.evidence.Shapes
	if n := len(named); n > 0 && named[n-1].Secret {
		named = named[:n-1]
	}
	if !slices.Equal(named, want) {
		return differs("shapes", named, want)
	}
	return c.secretShape(c.evidence.Shapes[len(named):], earlier)
}

// secretShape holds the shape that the runner has drawn against the manifest. Which size it
// is is the runner's word; that it has one, and within which ranges, is not. Rounds that
// were measured earlier go on with what they had, or did not have.
func (c checker) secretShape(drawn []gates.Shape, earlier int) error {
	field := fmt.Sprintf("shapes[%d]", len(c.evidence.Shapes)-1)
	switch {
	case len(drawn) == 0 && earlier == 0 && c.job.MustTimeSecretShape():
		return errors.New("shapes: there is no secret shape, and the rule wants one timed")
	case len(drawn) == 0:
		return nil
	case earlier == 0 && !c.job.TimesSecretShape():
		return fmt.Errorf("%s: nobody asked for a secret shape", field)
	}
	if err := c.problem(field, drawn[0].Name, drawn[0].Dims, true); err != nil {
		return err
	}
	dims, err := manifest.ParseDims(drawn[0].Dims, c.job.Manifest.Shapes[0].Dims)
	if err == nil {
		err = c.job.TakesSecret(dims)
	}
	if err != nil {
		return fmt.Errorf("%s.dims: %w", field, err)
	}
	want, err := c.job.SecretOnRecord(dims)
	if err != nil {
		return err
	}
	if drawn[0] != want {
		return differs(field, drawn[0], want)
	}
	return nil
}

// builds are of the sides that were sent: a baseline that is left out would make the
// kernel a new one, of which no speed is asked.
func (c checker) builds() error {
	e, job := c.evidence, c.job
	if e.Candidate == nil {
		return errors.New("candidate: there is no build")
	}
	if (e.Baseline != nil) != (job.Baseline != nil) {
		return differs("baseline", e.Baseline != nil, job.Baseline != nil)
	}
	type built struct {
		field string
		side  runners.Side
		build *gates.Build
	}
	sides := []built{{"candidate", job.Candidate, e.Candidate}}
	if e.Baseline != nil {
		sides = append(sides, built{"baseline", *job.Baseline, e.Baseline})
	}
	for _, s := range sides {
		m, variant := job.Of(s.side), s.side.Variant
		v, err := m.Variant(variant)
		switch {
		case err != nil:
			return err
		case s.build.Variant != variant:
			return differs(s.field+".variant", s.build.Variant, variant)
		case s.build.Source != v.Source:
			return differs(s.field+".source", s.build.Source, v.Source)
		case s.build.OK && s.build.Code == "":
			return fmt.Errorf("%s.code: it was built, and there is no hash of its machine code", s.field)
		case s.build.Toggles != nil && !same(s.build.Toggles, m.ToggleValues(variant)):
			return differs(s.field+".toggles", s.build.Toggles, m.ToggleValues(variant))
		}
		if err := c.parts(s.field, m, variant, s.build); err != nil {
			return err
		}
		if err := pinned(s.field, m, s.side, s.build); err != nil {
			return err
		}
	}
	equal := job.SameCode(e.Baseline, e.Candidate)
	if e.SameCode != equal {
		return fmt.Errorf("same_code: it is %v, and by the hashes and the launches of both sides it is %v", e.SameCode, equal)
	}
	if served := job.SameShapes(e); !slices.Equal(e.SameShapes, served) {
		return fmt.Errorf("same_shapes: they are %q, and by the hashes and the launches of both sides they are %q", e.SameShapes, served)
	}
	return nil
}

// pinned compilers are those that were asked for: what another makes of the sources is not what would be merged.
func pinned(field string, m *manifest.Manifest, side runners.Side, build *gates.Build) error {
	kind := runners.ToolchainOf(m)
	pin := side.Toolchains.Of(kind)
	if pin == nil || !build.OK {
		return nil
	}
	want := kind + " " + pin.Version
	if m.Compiler == manifest.PTX {
		want = "ptxas " + pin.Version
	}
	all := []gates.Build{*build}
	for _, p := range build.Parts {
		all = append(all, p.Build)
	}
	for _, b := range all {
		if b.Digest != pin.Digest {
			return differs(field+".compiler_digest", b.Digest, pin.Digest)
		}
		if b.Compiler != want && m.Compiler != manifest.Program { // which is named by its command
			return differs(field+".compiler", b.Compiler, want)
		}
	}
	return nil
}

// parts of a choice are those of the manifest, each with the shapes that it serves: one that
// is left out would not be judged.
func (c checker) parts(field string, m *manifest.Manifest, variant string, build *gates.Build) error {
	device := c.evidence.Device.Arch
	if !c.mode.Architectures {
		device = ""
	}
	var want []string
	if variant == manifest.Choice {
		want = m.Parts(variant, device)
	}
	if len(build.Parts) != len(want) && (build.OK || len(build.Parts) > len(want)) {
		return fmt.Errorf("%s.parts: there are %d, and the choice has %d", field, len(build.Parts), len(want))
	}
	for i, part := range build.Parts {
		at := fmt.Sprintf("%s.parts[%d]", field, i)
		var shapes []string
		for _, s := range m.ServedBy(variant, want[i], device) {
			shapes = append(shapes, s.Name)
		}
		v, err := m.Variant(want[i])
		switch {
		case err != nil:
			return err
		case part.Variant != want[i] || part.Source != v.Source:
			return differs(at+".variant", part.Variant+" "+part.Source, want[i]+" "+v.Source)
		case !slices.Equal(part.Shapes, shapes):
			return differs(at+".shapes", part.Shapes, shapes)
		case build.OK && (!part.OK || part.Code == "" || len(part.Parts) > 0):
			return fmt.Errorf("%s: it is not built, and the choice is", at)
		}
	}
	return nil
}

// whole asks the judge whether a runner that does its work would have ended here: one
// that leaves out what does not suit it has measured nothing.
func (c checker) whole() error {
	if need := gates.Next(c.job.Policy, c.evidence); need.Gate != "" {
		return fmt.Errorf("%s: it ends before what the gate asks for was gathered", need.Gate)
	}
	return nil
}

// rest is what was not asked for, and what no backend of the mode can know.
func (c checker) rest() error {
	e := c.evidence
	switch {
	case e.MachineCode != nil && !c.mode.Disassembly:
		return fmt.Errorf("machine_code: nothing shows that of a %s kernel", e.Mode)
	case e.Explained != nil && len(e.Explained.Shapes) > 0 && !c.mode.Explains():
		return fmt.Errorf("explained.shapes: nothing counts what a %s kernel does", e.Mode)
	case e.Explained != nil && slices.ContainsFunc(e.Explained.Shapes, func(s gates.ExplainedShape) bool { return !slices.Contains(c.job.ShapeNames(), s.Shape) }):
		return errors.New("explained.shapes: one of them is none that both sides take")
	case e.Profile != nil && len(e.Profile.Metrics) > 0 && !c.mode.Profiler:
		return fmt.Errorf("profile.metrics: there is no profiler for a %s kernel", e.Mode)
	}
	if len(c.evidence.Rivals) > 0 {
		return errors.New("rivals: nobody asked for them")
	}
	return nil
}
