package manifest

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Recording is a file of real inputs of one shape. A policy lists it among its distributions, as recorded:NAME.
type Recording struct {
	Name    string  `yaml:"-"`
	File    string  `yaml:"file" required:"true" eg:"inputs/decode.safetensors" doc:"A safetensors file in the kernel's folder, or its Git LFS pointer, or an https address. It has a tensor for each input, with the argument's name, shape and format."`
	SHA256  string  `yaml:"sha256" required:"true" eg:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"SHA-256 of the file in hex: what sha256sum prints."`
	Shape   string  `yaml:"shape" required:"true" eg:"mission" doc:"The shape that was recorded."`
	Vary    *Vary   `yaml:"vary" eg:"{noise: 0.1, shuffle: [B]}" default:"(the recording is compared, and nothing is timed on it)" doc:"How the inputs of timed launches differ from the recording and from each other."`
	Missing Missing `yaml:"missing" eg:"draw" default:"error" doc:"What happens to an input that the file does not have. draw: it is drawn at random, as normal inputs are."`
}

// Vary says how each timed launch gets inputs that no launch has seen, and that are still like the recording. Only noise
// keeps a remembered answer from being right: see docs/manifest.md.
type Vary struct {
	Noise   float64  `yaml:"noise" required:"true" eg:"0.1" bounds:"0.01 to 0.5" doc:"Every real number is multiplied by a random factor from 1 − noise to 1 + noise. Zeros, infinities, signs and integers stay. The answer must move by more than the policy's bounds on errors, which each run checks."`
	Keep    []string `yaml:"keep" eg:"[cos, sin]" default:"(none)" doc:"Inputs without noise, such as masks and tables."`
	Shuffle []string `yaml:"shuffle" eg:"[B, H]" default:"(none)" doc:"Dims whose entries are independent of each other, such as the batch: they come in random order, the same in all arrays. No input may index them."`
}

// A Missing says what happens to an input that a recording does not have.
type Missing string

const (
	MissingError Missing = "error"
	MissingDraw  Missing = "draw"
)

var missings = []Missing{MissingError, MissingDraw}

func (w *Missing) UnmarshalStrict(n *strict.Node) { strict.Word(n, w, missings) }
func (w *Missing) JSONSchema() map[string]any     { return strict.WordSchema(missings) }

// Recordings are read from a mapping of names.
type Recordings []Recording

const (
	recordingExample = "decode: {file: inputs/decode.safetensors, sha256: 9f86d0…, shape: mission}"
	maxRecordings    = 16
	leastNoise       = 0.01
	mostNoise        = 0.5
)

func (r *Recordings) UnmarshalStrict(n *strict.Node) {
	*r = nil
	eachNamed(n, recordingExample, func(p strict.Pair) {
		if !distribution.IsRecordingName(p.Key) {
			p.Errorf("%q is not a name (write up to 64 letters, digits, '.', '_' and '-')", p.Key)
		}
		one := Recording{Name: p.Key}
		p.Value.Decode(&one)
		*r = append(*r, one)
	})
	if len(*r) > maxRecordings {
		n.Errorf("has %d recordings (write at most %d)", len(*r), maxRecordings)
	}
}

func (r *Recordings) JSONSchema() map[string]any { return mappingOf(Recording{}) }

var sha256Text = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (r *Recording) ValidateStrict(n *strict.Node) {
	if r.Missing == "" {
		r.Missing = MissingError
	}
	if n.Has("sha256") && !sha256Text.MatchString(r.SHA256) {
		n.Child("sha256").Errorf("%q is no SHA-256 (write the 64 hex digits that sha256sum prints)", r.SHA256)
	}
	if !n.Has("file") {
		return
	}
	at := n.Child("file")
	if !strings.Contains(r.File, ":") {
		if !filePath.MatchString(r.File) {
			at.Errorf("%q is not a file within the kernel's folder (write e.g. inputs/decode.safetensors, or an https address)", r.File)
		}
		return
	}
	u, err := url.Parse(r.File)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		at.Errorf("is not an https address without user and fragment (write e.g. https://example.com/decode.safetensors)")
	}
}

func (v *Vary) ValidateStrict(n *strict.Node) {
	if n.Has("noise") && !(v.Noise >= leastNoise && v.Noise <= mostNoise) {
		n.Child("noise").Errorf("%v is not from %v to %v (write e.g. 0.1): with less, a kernel could remember the answer; with more, the inputs are no longer like the recording", v.Noise, leastNoise, mostNoise)
	}
}

// Remote reports whether the file is at an address and not in the repository.
func (r Recording) Remote() bool { return strings.Contains(r.File, ":") }

// OnRecord returns what policies and gates know of the kernel's recordings.
func (m *Manifest) OnRecord() []distribution.Recording {
	return mapped(m.Recorded, func(r Recording) distribution.Recording {
		return distribution.Recording{Name: r.Name, Shape: r.Shape, Timed: r.Vary != nil, SHA256: r.SHA256}
	})
}

// HoldsRecording reports whether a file of the kernel's folder is a recording. No build gets it: a kernel could contain it.
func (m *Manifest) HoldsRecording(relpath string) bool {
	return slices.ContainsFunc(m.Recorded, func(r Recording) bool { return strings.EqualFold(r.File, relpath) })
}

// ShuffledAxes returns for each axis of an array the shuffled dim that it is, or "".
func (m *Manifest) ShuffledAxes(v *Vary, argument string) []string {
	a, ok := m.argument(argument)
	if !ok || v == nil {
		return nil
	}
	axes := make([]string, len(a.Shape))
	for i := range a.Shape {
		if name, bare := a.Shape[i].bare(); bare && slices.Contains(v.Shuffle, name) {
			axes[i] = name
		}
	}
	return axes
}

// checkRecorded checks recordings against shapes and arguments.
func (c *checker) checkRecorded() {
	m := c.m
	if len(m.Recorded) == 0 {
		return
	}
	if m.Mode == ModeCommand {
		c.errorf(c.n.Child("recorded"), "is not read in command mode: the harness draws its inputs (delete it)")
		return
	}
	for _, r := range m.Recorded {
		at := c.n.Child("recorded", r.Name)
		if _, ok := m.Shape(r.Shape); !ok && r.Shape != "" && len(m.Shapes) > 0 {
			c.errorf(at.Child("shape"), "%q is none of the shapes (write one of %s)", r.Shape, strings.Join(m.ShapeNames(), ", "))
		}
		for what, file := range m.filesInUse() {
			if strings.EqualFold(r.File, file) {
				c.errorf(at.Child("file"), "%q is %s too (name a different file)", r.File, what)
			}
		}
		if r.Vary != nil {
			c.checkVary(r.Vary, at.Child("vary"))
		}
	}
}

// filesInUse returns the files that builds need, by what they are.
func (m *Manifest) filesInUse() map[string]string {
	files := map[string]string{}
	if m.Reference != nil {
		files["the reference"] = m.Reference.Source
	}
	for _, v := range m.Variants {
		if v.Source != "" {
			files["the source of the variant "+v.Name] = v.Source
		}
	}
	return files
}

func (c *checker) checkVary(v *Vary, at *strict.Node) {
	m := c.m
	inputs := slices.DeleteFunc(slices.Clone(m.Arguments), func(a Argument) bool { return a.Access != In && a.Access != InOut || a.ScaleOf != "" })
	names := mapped(inputs, func(a Argument) string { return a.Name })
	for i, name := range v.Keep {
		if !slices.Contains(names, name) {
			c.errorf(itemOf(at.Child("keep"), i), "%q is no input (write one of %s)", name, strings.Join(names, ", "))
		}
	}
	if !slices.ContainsFunc(inputs, func(a Argument) bool {
		return a.Fields == nil && (a.DType.Float() || a.Quantize != nil) && !slices.Contains(v.Keep, a.Name)
	}) {
		c.errorf(at, "varies no input: none has real numbers without being kept (delete vary, and nothing is timed on the recording)")
	}
	for i, dim := range v.Shuffle {
		c.checkShuffle(dim, itemOf(at.Child("shuffle"), i))
	}
}

// checkShuffle refuses a dim that is only part of an axis: the order of its entries is not known there.
func (c *checker) checkShuffle(dim string, at *strict.Node) {
	m, used := c.m, false
	if !slices.Contains(m.dims(), dim) {
		c.errorf(at, "%q is no dim (write one of %s)", dim, strings.Join(m.dims(), ", "))
		return
	}
	for _, a := range m.Arguments {
		for i := range a.Shape {
			name, bare := a.Shape[i].bare()
			if bare && name == dim {
				used = used || a.Access != Out
			} else if slices.Contains(a.Shape[i].names, dim) {
				c.errorf(at, "the axis %q of %s depends on %s, which orders its entries in a way that is not known (delete %[3]s)", a.Shape[i].String(), a.Name, dim)
				return
			}
		}
	}
	if !used {
		c.errorf(at, "no input has an axis %s (delete it)", dim)
	}
}

// recordedText is a recording in one line; "" where there is none of that name.
func recordedText(m *Manifest, name string) string {
	for _, r := range m.Recorded {
		if r.Name == name {
			vary := "none"
			if v := r.Vary; v != nil {
				vary = fmt.Sprintf("{noise: %v, keep: [%s], shuffle: [%s]}", v.Noise, strings.Join(v.Keep, ", "), strings.Join(v.Shuffle, ", "))
			}
			return fmt.Sprintf("%s of %s, sha256 %s, vary: %s, missing: %s", r.File, r.Shape, r.SHA256, vary, r.Missing)
		}
	}
	return ""
}
