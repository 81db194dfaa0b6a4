package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// All keys that a result line may have, by the kind of line.
var (
	timeKeys   = []string{"ns", "us", "times"}
	figureKeys = []string{"elements", "max_abs", "mean_abs", "norm", "bad", "nan"}
	extraKeys  = []string{"seed", "distribution", "inf", "unwritten", "deterministic", "hash"}
)

const (
	maxNanos = 1e15 // eleven days
	maxCount = 1 << 53
)

// line parses one result line in our format into the report.
func (v vocabulary) line(o object, r *report) error {
	if o.size > maxObject {
		return fmt.Errorf("is longer than %d MiB (print fewer times)", maxObject>>20)
	}
	if o.has("error") {
		text, err := o.text("error", 10_000)
		if err == nil && len(o.fields) > 1 {
			err = errors.New("error has other keys next to it (print it on a separate line)")
		}
		if r.problem == "" {
			r.problem = oneLine(text)
		}
		return err
	}
	for _, f := range o.fields {
		if f.key != "shape" && !slices.Contains(slices.Concat(timeKeys, figureKeys, extraKeys), f.key) {
			return unknownKey(f.key)
		}
	}
	name, err := o.text("shape", 200)
	if err != nil {
		return err
	}
	asked, err := v.known(name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(timeKeys, o.has) {
		nanos, err := v.times(o)
		if err == nil && asked {
			r.times[name] = append(r.times[name], nanos...)
		}
		return err
	}
	f, err := o.figure()
	f.shape = name
	if err == nil && asked {
		r.figures = append(r.figures, f)
	}
	return err
}

func unknownKey(key string) error {
	like := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	hints := map[string]string{
		"time": "times", "microseconds": "us", "nanoseconds": "ns", "usec": "us", "nsec": "ns", "timeus": "us", "timens": "ns",
		"maxabserr": "max_abs", "maxabserror": "max_abs", "meanabserr": "mean_abs", "meanabserror": "mean_abs",
		"normerror": "norm", "name": "shape", "count": "elements", "nans": "nan", "infs": "inf", "badelements": "bad",
	}
	for _, known := range slices.Concat(timeKeys, figureKeys, extraKeys, []string{"shape", "error"}) {
		hints[like(known)] = known
	}
	if meant, ok := hints[like(key)]; ok {
		return fmt.Errorf("unknown key %q (did you mean %s?)", oneLine(key), meant)
	}
	return fmt.Errorf("unknown key %q (a line of times has shape and one of %s; a line of figures has shape, %s, and may have %s)",
		oneLine(key), strings.Join(timeKeys, ", "), strings.Join(figureKeys, ", "), strings.Join(extraKeys, ", "))
}

// times returns the line's times in nanoseconds.
func (v vocabulary) times(o object) ([]float64, error) {
	if len(o.fields) != 2 {
		return nil, fmt.Errorf("a line of times has shape and one of %s (print other figures on a line of their own)", strings.Join(timeKeys, ", "))
	}
	for key, scale := range map[string]float64{"ns": 1, "us": 1e3, "times": v.unit.Micros() * 1e3} {
		if !o.has(key) {
			continue
		}
		var values []*float64
		if json.Unmarshal(o.value(key), &values) != nil || len(values) == 0 {
			return nil, fmt.Errorf("%s is not a list of times (write e.g. [11.2, 11.1])", key)
		}
		nanos := make([]float64, len(values))
		for i, value := range values {
			if value == nil {
				return nil, fmt.Errorf("%s[%d] is null (leave out launches that were not timed)", key, i)
			}
			nanos[i] = *value * scale
			if err := plausible(nanos[i]); err != nil {
				return nil, fmt.Errorf("%s[%d] is %v: %w", key, i, *value, err)
			}
		}
		return nanos, nil
	}
	return nil, errors.New("has no times") // unreachable: one of the keys exists
}

func plausible(nanos float64) error {
	switch {
	case !(nanos > 0):
		return errors.New("a launch takes time (is the clock too coarse?)")
	case nanos > maxNanos:
		return errors.New("no launch takes that long (is the unit right?)")
	}
	return nil
}

// figure parses a line of error figures, except for its shape.
func (o object) figure() (figure, error) {
	f := figure{line: o.line}
	var errs []error
	number := func(key string, to *float64) {
		var value *float64
		if !o.has(key) {
			errs = append(errs, fmt.Errorf("%s is missing (a line of figures has shape, %s)", key, strings.Join(figureKeys, ", ")))
		} else if json.Unmarshal(o.value(key), &value) != nil || value == nil || *value < 0 || math.IsInf(*value, 0) {
			errs = append(errs, fmt.Errorf("%s is not a number of 0 or more", key))
		} else {
			*to = *value
		}
	}
	count := func(key string, required bool, to *int) {
		var value *int64
		switch {
		case !o.has(key) && !required:
		case !o.has(key):
			errs = append(errs, fmt.Errorf("%s is missing (a line of figures has shape, %s)", key, strings.Join(figureKeys, ", ")))
		case json.Unmarshal(o.value(key), &value) != nil || value == nil || *value < 0 || *value > maxCount:
			errs = append(errs, fmt.Errorf("%s is not a whole number of 0 or more", key))
		default:
			*to = int(*value)
		}
	}
	e := &f.errors
	count("elements", true, &e.Elements)
	number("max_abs", &e.MaxAbs)
	number("mean_abs", &e.MeanAbs)
	number("norm", &e.Norm)
	count("bad", true, &e.Bad)
	count("nan", true, &e.NaN)
	count("inf", false, &e.Inf)
	count("unwritten", false, &e.Unwritten)
	if len(errs) == 0 {
		errs = append(errs, consistent(*e), o.origin(&f))
	}
	return f, cmp.Or(errs...)
}

func consistent(e gates.Errors) error {
	switch most := max(e.Bad, e.NaN, e.Inf, e.Unwritten); {
	case e.Elements == 0:
		return errors.New("elements is 0: nothing was compared")
	case most > e.Elements:
		return fmt.Errorf("%d elements are counted of %d", most, e.Elements)
	case e.MeanAbs > e.MaxAbs*(1+1e-6):
		return fmt.Errorf("mean_abs %v is above max_abs %v", e.MeanAbs, e.MaxAbs)
	}
	return nil
}

// origin parses the part of a line of figures that is not an error figure.
func (o object) origin(f *figure) error {
	if o.has("seed") {
		if json.Unmarshal(o.value("seed"), &f.seed) != nil || f.seed == nil {
			return errors.New("seed is not a whole number of 0 or more")
		}
	}
	if o.has("deterministic") {
		if json.Unmarshal(o.value("deterministic"), &f.deterministic) != nil || f.deterministic == nil {
			return errors.New("deterministic is neither true nor false")
		}
	}
	var err error
	if o.has("distribution") {
		if f.distribution, err = o.text("distribution", 100); err != nil {
			return err
		}
	}
	if o.has("hash") {
		f.hash, err = o.text("hash", 200)
	}
	return err
}

func (o object) value(key string) json.RawMessage {
	for _, f := range o.fields {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

func (o object) text(key string, longest int) (string, error) {
	if !o.has(key) {
		return "", fmt.Errorf("%s is missing (every line of times or figures names its shape)", key)
	}
	var text *string
	if json.Unmarshal(o.value(key), &text) != nil || text == nil || *text == "" || len(*text) > longest {
		return "", fmt.Errorf("%s is not a text of 1 to %d bytes", key, longest)
	}
	return *text, nil
}
