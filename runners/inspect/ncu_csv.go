package inspect

import (
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies"
)

// parseCSV reads what ncu prints with --csv: the long form, one row a metric, and that of --page raw, one row a
// launch below a row of units. Lines that are no part of the table are skipped, as a program's own prints may
// stand around and between its rows.
func parseCSV(out string) ([]Launch, error) {
	p := csvParser{}
	number := 0
	for line := range strings.Lines(out) {
		number++
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, fmt.Errorf("reading ncu's table, line %d: %w", number, err)
		}
	}
	if p.table == nil {
		return nil, errors.New(`reading ncu's table: there is none: no line starts with "ID" and names its columns (see ncu's output for the reason)`)
	}
	return p.launches, nil
}

var (
	rowStart = regexp.MustCompile(`^"[\d,]+",`)
)

// A table is one header and what follows from it.
type table struct {
	columns []string
	kernel  int
	name    int // of the metric, in the long form; -1 in the wide one
	unit    int
	value   int
	units   []string // the wide form's second row
	begin   int      // the first launch of this table
}

type csvParser struct {
	table    *table
	launches []Launch
}

func (p *csvParser) line(line string) error {
	switch {
	case strings.HasPrefix(line, `"ID"`):
		return p.header(line)
	case p.table == nil:
		return nil
	case rowStart.MatchString(line):
		fields, err := split(line)
		if err != nil {
			return err
		}
		if p.table.name < 0 {
			return p.wide(fields)
		}
		return p.long(fields)
	case strings.HasPrefix(line, `"",`) && p.table.name < 0 && p.table.units == nil:
		fields, err := split(line)
		if err != nil {
			return err
		}
		if len(fields) != len(p.table.columns) {
			return fmt.Errorf("the row of units has %d columns, the header %d", len(fields), len(p.table.columns))
		}
		p.table.units = fields
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

// header starts a table. A line that only looks like one is left to the program that printed it.
func (p *csvParser) header(line string) error {
	columns, err := split(line)
	if err != nil {
		return nil
	}
	t := &table{columns: columns, kernel: slices.Index(columns, "Kernel Name"), begin: len(p.launches)}
	if t.kernel < 0 {
		return nil
	}
	t.name, t.unit, t.value = slices.Index(columns, "Metric Name"), slices.Index(columns, "Metric Unit"), slices.Index(columns, "Metric Value")
	if t.name >= 0 && (t.unit < 0 || t.value < 0) {
		return errors.New(`the header has a column "Metric Name" but not both of "Metric Unit" and "Metric Value"`)
	}
	p.table = t
	return nil
}

func (p *csvParser) long(fields []string) error {
	t := p.table
	if last := max(t.kernel, t.name, t.unit, t.value); len(fields) <= last {
		return fmt.Errorf("the row has %d columns, expected at least %d", len(fields), last+1)
	}
	launch, _, err := p.launch(fields)
	if err != nil {
		return err
	}
	if fields[t.name] == "" { // advice of a rule, not a counter
		return nil
	}
	return launch.add(fields[t.name], fields[t.unit], fields[t.value])
}

func (p *csvParser) wide(fields []string) error {
	t := p.table
	if t.units == nil {
		return errors.New("a launch stands before the row of units")
	}
	if len(fields) != len(t.columns) {
		return fmt.Errorf("the row has %d columns, the header %d", len(fields), len(t.columns))
	}
	launch, fresh, err := p.launch(fields)
	if err != nil {
		return err
	}
	if !fresh {
		return fmt.Errorf("launch %d has a row already", launch.ID)
	}
	for i, name := range t.columns {
		if !isMetric(name) {
			continue
		}
		if err := launch.add(name, t.units[i], fields[i]); err != nil {
			return err
		}
	}
	return nil
}

// isMetric tells a counter's column from those that describe the launch, of which newer versions have more.
func isMetric(column string) bool {
	switch column {
	case "ID", "Context", "Stream", "Device", "CC":
		return false
	}
	return policies.IsMetric(column)
}

// launch finds the row's launch among those of this table, or starts it.
func (p *csvParser) launch(fields []string) (l *Launch, fresh bool, err error) {
	id, err := strconv.Atoi(strings.ReplaceAll(fields[0], ",", ""))
	if err != nil {
		return nil, false, fmt.Errorf("%q is not a launch's number", fields[0])
	}
	kernel := fields[p.table.kernel]
	// Rows of one launch stand together, so the search starts at the end.
	for i := len(p.launches) - 1; i >= p.table.begin; i-- {
		if l := &p.launches[i]; l.ID == id {
			if l.Kernel != kernel {
				return nil, false, fmt.Errorf("launch %d is of %q here and of %q above", id, kernel, l.Kernel)
			}
			return l, false, nil
		}
	}
	p.launches = append(p.launches, Launch{ID: id, Kernel: kernel})
	return &p.launches[len(p.launches)-1], true, nil
}

func (l *Launch) add(name, unit, cell string) error {
	value, beside, ok, err := parseValue(cell)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !ok {
		return nil
	}
	if unit == "" {
		unit = beside
	}
	if beside != "" && beside != unit {
		return fmt.Errorf("%s: the value %q is not in the unit %q of its column", name, cell, unit)
	}
	for _, m := range l.Metrics {
		if m.Name == name && m.Unit == unit {
			if m.Value != value {
				return fmt.Errorf("%s of launch %d is %v here and %v above", name, l.ID, value, m.Value)
			}
			return nil
		}
	}
	l.Metrics = append(l.Metrics, Metric{Name: name, Unit: unit, Value: value})
	return nil
}
