package inspect

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// parseCSV parses the output of ncu with --csv --page raw: one row per launch below a row of units.
// It skips lines that are not part of the table, because the program's output may stand around and
// between its rows. A cell that is no number is an error, unless it is not among the metrics that were
// asked for: nil asks for all.
func parseCSV(out string, asked []string) ([]Launch, error) {
	p := csvParser{asked: asked}
	number := 0
	for line := range strings.Lines(out) {
		number++
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, fmt.Errorf("reading ncu's table, line %d: %w", number, err)
		}
	}
	if p.columns == nil {
		return nil, errors.New(`reading ncu's table: there is none: no line starts with "ID" and names its columns (see ncu's output for the reason)`)
	}
	return p.launches, nil
}

var rowStart = regexp.MustCompile(`^"[\d,]+",`)

// A csvParser holds the header that it has read and the rows after it.
type csvParser struct {
	columns  []string
	kernel   int      // the column of the kernel's name
	units    []string // the second row
	begin    int      // index of the first launch of this table
	launches []Launch
	asked    []string
}

func (p *csvParser) line(line string) error {
	switch {
	case strings.HasPrefix(line, `"ID"`):
		p.header(line)
	case p.columns == nil:
	case rowStart.MatchString(line):
		fields, err := split(line)
		if err != nil {
			return err
		}
		return p.row(fields)
	case strings.HasPrefix(line, `"",`) && p.units == nil:
		fields, err := split(line)
		if err != nil {
			return err
		}
		if len(fields) != len(p.columns) {
			return fmt.Errorf("the row of units has %d columns, the header %d", len(fields), len(p.columns))
		}
		p.units = fields
	}
	return nil
}

func split(line string) ([]string, error) {
	fields, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		return nil, errors.New("the row is broken (was the output cut off?)")
	}
	return fields, nil
}

// header starts a table. A line that only looks like a header is output of the program, and is
// ignored.
func (p *csvParser) header(line string) {
	columns, err := split(line)
	if kernel := slices.Index(columns, "Kernel Name"); err == nil && kernel >= 0 {
		p.columns, p.kernel, p.units, p.begin = columns, kernel, nil, len(p.launches)
	}
}

func (p *csvParser) row(fields []string) error {
	if p.units == nil {
		return errors.New("a launch stands before the row of units")
	}
	if len(fields) != len(p.columns) {
		return fmt.Errorf("the row has %d columns, the header %d", len(fields), len(p.columns))
	}
	id, err := strconv.Atoi(strings.ReplaceAll(fields[0], ",", ""))
	if err != nil {
		return fmt.Errorf("%q is not a launch's number", fields[0])
	}
	if slices.ContainsFunc(p.launches[p.begin:], func(l Launch) bool { return l.ID == id }) {
		return fmt.Errorf("launch %d has a row already", id)
	}
	launch := Launch{ID: id, Kernel: fields[p.kernel]}
	for i, name := range p.columns {
		if !isMetric(name) {
			continue
		}
		if err := launch.add(name, p.units[i], fields[i]); err != nil && (p.asked == nil || slices.Contains(p.asked, name)) {
			return err
		}
	}
	p.launches = append(p.launches, launch)
	return nil
}

// isMetric reports whether a column is a counter. Other columns describe the launch, and newer
// versions have more of them.
func isMetric(column string) bool {
	switch column {
	case "ID", "Context", "Stream", "Device", "CC":
		return false
	}
	return policy.IsMetric(column)
}

func (l *Launch) add(name, unit, cell string) error {
	value, beside, ok, err := parseValue(cell)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !ok {
		return nil
	}
	unit = cmp.Or(unit, beside)
	if beside != "" && beside != unit {
		return fmt.Errorf("%s: the value %q is not in the unit %q of its column", name, cell, unit)
	}
	l.Metrics = append(l.Metrics, Metric{Name: name, Unit: unit, Value: value})
	return nil
}

var (
	// Commas are allowed only between thousands: in some locales 65,77 means 65.77, and must not be
	// read as 6577.
	numberPrefix = regexp.MustCompile(`^[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?`)
	startsNumber = regexp.MustCompile(`^[+-]?\.?\d`)
	unitText     = regexp.MustCompile(`^(?:%|[A-Za-z]+(?:/[A-Za-z]+)*)$`)
	instances    = regexp.MustCompile(`^\(.*\)$`)
)

// parseValue parses a cell. A cell has a value, or none (n/a, nan, a text such as the GPU's name).
// A cell that looks like a number and is none is an error. A unit next to the number is returned
// too.
func parseValue(cell string) (value float64, unit string, ok bool, err error) {
	// ncu marks values that it could not collect with (!).
	s := strings.TrimPrefix(strings.TrimSpace(cell), "(!)")
	s = strings.TrimSpace(strings.Trim(strings.TrimSpace(s), `"'`))
	if !startsNumber.MatchString(s) {
		return 0, "", false, nil
	}
	number := numberPrefix.FindString(s)
	rest := strings.TrimSpace(s[len(number):])
	switch {
	case unitText.MatchString(rest):
		unit = rest
	case rest != "" && !instances.MatchString(rest):
		return 0, "", false, fmt.Errorf("%q is not a number (run ncu with LC_ALL=C)", cell)
	}
	value, err = strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil {
		return 0, "", false, fmt.Errorf("%q is not a number that can be held", cell)
	}
	return value, unit, true, nil
}
