package gates

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxEvidence is the largest evidence file that is read.
const maxEvidence = 256 << 20

// ParseEvidence reads stored evidence. The error is one line that names the
// file, the place and the field.
func ParseEvidence(file string, data []byte) (*Evidence, error) {
	if len(data) > maxEvidence {
		return nil, fmt.Errorf("%s: is %d bytes long (at most %d are read)", file, len(data), maxEvidence)
	}
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, locate(file, data, err)
	}
	if head.Schema == nil || *head.Schema != EvidenceSchema {
		got := "missing"
		if head.Schema != nil {
			got = fmt.Sprintf("%q", *head.Schema)
		}
		return nil, fmt.Errorf("%s: schema: is %s (this program reads %q; gather the evidence with the same version)", locateField(file, data, "schema"), got, EvidenceSchema)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	e := &Evidence{}
	if err := dec.Decode(e); err != nil {
		return nil, locate(file, data, err)
	}
	if field, problem := e.problem(); problem != "" {
		return nil, fmt.Errorf("%s: %s: %s", locateField(file, data, field), field, problem)
	}
	return e, nil
}

// locate adds the position of the mistake to a decoding error.
func locate(file string, data []byte, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%s: is not valid JSON: %s", position(file, data, syntax.Offset), syntax.Error())
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: %s: is a JSON %s where %s is expected", position(file, data, kind.Offset), cmp.Or(kind.Field, "evidence"), kind.Value, describeKind(kind.Type.Kind().String()))
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if name, ok := strings.CutPrefix(text, "unknown field "); ok {
		offset := bytes.Index(data, []byte(name)) + 1
		return fmt.Errorf("%s: unknown field %s (this program reads %s)", position(file, data, int64(offset)), name, EvidenceSchema)
	}
	return fmt.Errorf("%s: %s", file, text)
}

func describeKind(kind string) string {
	switch kind {
	case "struct", "map":
		return "an object"
	case "slice":
		return "a list"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	}
	return "a number"
}

// position is the line and column of the byte before the offset: decoders count the offending byte
// as read.
func position(file string, data []byte, offset int64) string {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	return fmt.Sprintf("%s:%d:%d", file, 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'))
}

// locateField finds a field such as performance.rounds[2].series[0].order in the file.
func locateField(file string, data []byte, field string) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	offset := int64(0)
	for part := range strings.SplitSeq(strings.NewReplacer("[", ".#", "]", "").Replace(field), ".") {
		next, ok := descend(dec, part)
		if !ok {
			break
		}
		offset = next
	}
	return position(file, data, offset+1)
}

// descend moves the decoder to the value of a key (or #index) of the next value, and returns where
// it begins.
func descend(dec *json.Decoder, part string) (int64, bool) {
	open, err := dec.Token()
	if err != nil {
		return 0, false
	}
	index := 0
	for dec.More() {
		name := fmt.Sprintf("#%d", index)
		if open == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return 0, false
			}
			name, _ = key.(string)
		}
		if name == part {
			return dec.InputOffset(), true
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return 0, false
		}
		index++
	}
	return 0, false
}

// problem is the first field that the types allow and the judge cannot use.
func (e *Evidence) problem() (field, problem string) {
	if e.Kernel == "" {
		return "kernel", "is empty"
	}
	if a := e.Abilities; a != nil && !slices.Contains([]Clock{ClockProcess, ClockDevice, ClockHarness}, a.Clock) {
		return "abilities.clock", "is not a clock that this version knows"
	}
	shapes, warm, secret := map[string]bool{}, map[string]bool{}, false
	for i, s := range e.Shapes {
		if s.Name == "" || shapes[s.Name] {
			return fmt.Sprintf("shapes[%d].name", i), "is empty or named twice"
		}
		if s.FLOPs < 0 || s.Bytes < 0 {
			return fmt.Sprintf("shapes[%d]", i), "has negative work"
		}
		if s.Secret && (secret || s.Dims == "") {
			return fmt.Sprintf("shapes[%d].secret", i), "marks a second secret shape, or one without dims"
		}
		if field := s.wrongContext(); field != "" {
			return fmt.Sprintf("shapes[%d].%s", i, field), "does not belong to a shape with a warm cache"
		}
		shapes[s.Name], warm[s.Name], secret = true, s.Context != "", secret || s.Secret
	}
	if field, problem := e.Weights.problem(); problem != "" {
		return field, problem
	}
	if c := e.Correctness; c != nil {
		for i, k := range c.Cases {
			if f, problem := k.invalid(); problem != "" {
				return fmt.Sprintf("correctness.cases[%d].%s", i, f), problem
			}
		}
	}
	if m := e.MachineCode; m != nil {
		if f, problem := m.problem(); problem != "" {
			return "machine_code." + f, problem
		}
	}
	if s := e.Sanitize; s != nil {
		if f, problem := s.problem(); problem != "" {
			return "sanitize." + f, problem
		}
	}
	for i, r := range e.Rivals {
		if f, problem := r.problem(shapes); problem != "" {
			return fmt.Sprintf("rivals[%d].%s", i, f), problem
		}
	}
	for i, b := range e.Best {
		if f, problem := b.problem(shapes); problem != "" {
			return fmt.Sprintf("best[%d].%s", i, f), problem
		}
	}
	if x := e.Explained; x != nil {
		if f, problem := x.problem(shapes); problem != "" {
			return "explained." + f, problem
		}
	}
	if m := e.Energy; m != nil {
		if f, problem := m.problem(shapes); problem != "" {
			return "energy." + f, problem
		}
	}
	if p := e.Performance; p != nil {
		return p.problem(shapes, warm)
	}
	return "", ""
}

// invalid is the first figure that no comparison can give.
func (k Case) invalid() (field, problem string) {
	for _, e := range []struct {
		field  string
		errors *Errors
	}{{"errors", k.Errors}, {"end_to_end", k.EndToEnd}, {"baseline", k.Baseline}, {"baseline_end_to_end", k.BaselineEndToEnd}, {"replayed", k.Replayed}} {
		if e.errors != nil && e.errors.negative() {
			return e.field, "has a negative figure"
		}
	}
	return "", ""
}

func (e Errors) negative() bool {
	return min(e.Elements, e.Bad, e.NaN, e.Inf, e.Unwritten) < 0 || min(e.MaxAbs, e.MeanAbs, e.Norm) < 0 ||
		slices.ContainsFunc(e.Outputs, func(o OutputErrors) bool { return o.negative() })
}

func (r Rival) problem(shapes map[string]bool) (field, problem string) {
	s := r.Stats
	switch {
	case r.Name == "":
		return "name", "is empty"
	case r.Shape != "" && !shapes[r.Shape]:
		return "shape", fmt.Sprintf("%q is not among the shapes", r.Shape)
	case r.Failure != "" && s.N != 0:
		return "failure", fmt.Sprintf("is given together with times (%d samples): a rival has failed or was timed", s.N)
	case r.Failure != "":
		return "", ""
	case r.Shape == "":
		return "shape", "is empty"
	case s.N <= 0 || !(s.Min > 0) || s.P50 < s.Min || s.P90 < s.P50 || s.P99 < s.P90 || s.Mean < s.Min || s.Std < 0 || s.CV < 0:
		return "stats", "are no summary of times above 0"
	}
	return "", ""
}

// problem is the first mistake in the rounds. The names of the shapes are known, and which of them are warm.
func (p *Performance) problem(shapes, warm map[string]bool) (field, problem string) {
	attempt := 1
	for i, r := range p.Rounds {
		field := fmt.Sprintf("performance.rounds[%d]", i)
		if r.Attempt < attempt {
			return field + ".attempt", fmt.Sprintf("is %d after attempt %d", r.Attempt, attempt)
		}
		attempt = r.Attempt
		if r.CodeNumber < 0 {
			return field + ".code_number", fmt.Sprintf("is %d (the first machine code of a change is number 1)", r.CodeNumber)
		}
		if first := codeNumber(p.Rounds[:1]); codeNumber(p.Rounds[i:i+1]) != first {
			return field + ".code_number", fmt.Sprintf("is %d, but the first round has %d (all rounds measure one machine code)", codeNumber(p.Rounds[i:i+1]), first)
		}
		for k, s := range r.Series {
			field := fmt.Sprintf("%s.series[%d]", field, k)
			if !shapes[s.Shape] {
				return field + ".shape", fmt.Sprintf("%q is not among the shapes", s.Shape)
			}
			if s.Cold && warm[s.Shape] {
				return field + ".cold", "is set for a shape with a warm cache"
			}
			if f, problem := s.problem(); problem != "" {
				return field + "." + f, problem
			}
		}
	}
	return "", ""
}

func (s Series) problem() (field, problem string) {
	samples := 0
	for _, r := range s.Order {
		switch r {
		case SideBaseline, SideCandidate, SideControl:
			samples++
		case ' ':
		default:
			return "order", fmt.Sprintf("has %q (only b, c, a and spaces between blocks)", r)
		}
	}
	if samples != len(s.Nanos) {
		return "ns", fmt.Sprintf("has %d samples, but order names %d", len(s.Nanos), samples)
	}
	if s.Wall != nil && len(s.Wall) != samples {
		return "wall_ns", fmt.Sprintf("has %d samples, but order names %d", len(s.Wall), samples)
	}
	if problem := s.States.problem(s.blocks()); problem != "" {
		return "states", problem
	}
	if s.Single == nil {
		s.Single = &Singles{}
	}
	if n := len(s.Single.Baseline); n != len(s.Single.Candidate) {
		return "single_ns", fmt.Sprintf("has %d launches of the baseline and %d of the candidate that ran alone", n, len(s.Single.Candidate))
	}
	if n := len(s.Single.FirstBaseline); n != len(s.Single.FirstCandidate) {
		return "single_ns", fmt.Sprintf("has %d first launches of the baseline and %d of the candidate", n, len(s.Single.FirstCandidate))
	}
	if n := len(s.Single.MeanBaseline); n != len(s.Single.MeanCandidate) || n > 0 && n != len(s.Single.Baseline) {
		return "single_ns", fmt.Sprintf("has %d and %d means of %d processes", n, len(s.Single.MeanCandidate), len(s.Single.Baseline))
	} else if n > 0 && s.Single.Launches < 2 {
		return "single_ns", fmt.Sprintf("has means of processes with %d launches", s.Single.Launches)
	}
	for _, times := range [][]float64{s.Nanos, s.Wall, s.Solo, s.Stateful, s.Single.Baseline, s.Single.Candidate, s.Single.FirstBaseline, s.Single.FirstCandidate, s.Single.MeanBaseline, s.Single.MeanCandidate} {
		for _, ns := range times {
			if !(ns > 0) || math.IsInf(ns, 0) {
				return "ns", fmt.Sprintf("has the time %v, which is not above 0", ns)
			}
		}
	}
	if s.SoloDisturbed < 0 || s.SoloDisturbed > len(s.Solo) {
		return "solo_disturbed", fmt.Sprintf("is %d of %d samples", s.SoloDisturbed, len(s.Solo))
	}
	if !(s.ClockNanos >= 0) || math.IsInf(s.ClockNanos, 0) {
		return "clock_ns", fmt.Sprintf("is %v", s.ClockNanos)
	}
	if s.Referenced < 0 {
		return "referenced", fmt.Sprintf("is %d", s.Referenced)
	}
	for name, n := range map[string]*Sampled{"apart": s.Apart, "beyond": s.Beyond} {
		if n != nil && (n.Compared < 0 || n.Compared > n.Launches || n.Launches > s.Verified) {
			return name, fmt.Sprintf("has %d compared of %d launches, and %d outputs were verified", n.Compared, n.Launches, s.Verified)
		}
	}
	if s.Worst != nil && s.Worst.negative() {
		return "worst", "has a negative figure"
	}
	for i, o := range s.Outputs {
		if o.Candidate.negative() || o.Baseline.negative() {
			return fmt.Sprintf("outputs[%d]", i), "has a negative figure"
		}
	}
	for _, i := range s.Disturbed {
		if i < 0 || i >= samples {
			return "disturbed", fmt.Sprintf("names sample %d of %d", i, samples)
		}
	}
	return "", ""
}
