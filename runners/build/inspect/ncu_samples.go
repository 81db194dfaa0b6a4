package inspect

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Sampled launch is where a sampling profiler found the warps of one launch.
type Sampled struct {
	Kernel       string
	Instructions []Sample // in the order of the code, without those at which no warp was found
	All          int      // the samples of all instructions
}

// A Sample is how often warps were found at one instruction.
type Sample struct {
	At      int // in bytes from the first instruction of the kernel
	Text    string
	Samples int
	Reason  string // why most of them waited, by ncu's word, such as long_sb; "" if that is not known
}

const (
	columnSamples = "Warp Stall Sampling (All Samples)"
	columnReason  = "stall_"
	// maxSampled bounds the instructions of a kernel that are read.
	maxSampled = 200_000
)

// sampled prints the samples of the launches in a report, launch by launch. A report without samples has launches without instructions.
func (n NCU) sampled(ctx context.Context, report string, env []string) ([]Sampled, error) {
	args := []string{n.Path, "--import", report, "--csv", "--page", "source", "--print-source", "sass", "--print-units", "base", "--print-kernel-base", "mangled"}
	out, complaints := capped{Limit: maxTable}, capped{Limit: 64 << 10}
	if err := runTool(ctx, command{Args: args, Env: env, Stdout: &out, Stderr: &complaints}); err != nil {
		return nil, fmt.Errorf("ncu %s could not print the samples of its report: %w: %s", n.Version, err, complaint(out.String()+complaints.String()))
	}
	if out.Overflow {
		return nil, fmt.Errorf("ncu's table of samples is longer than %d MiB", maxTable>>20)
	}
	return parseSamples(out.String())
}

// parseSamples parses the output of ncu with --csv --page source --print-source sass: for each launch a line "Kernel Name", then a header that
// has "Address" and "Source", then one row for each instruction. Every other column is optional, and so is a value. Lines of other forms are
// output of the program and are skipped.
func parseSamples(out string) ([]Sampled, error) {
	r := csv.NewReader(strings.NewReader(out))
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	var all []Sampled
	var columns *sampleColumns
	first := 0
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading ncu's samples: %w", err)
		}
		switch {
		case len(row) >= 2 && row[0] == "Kernel Name":
			all, columns = append(all, Sampled{Kernel: shortened(row[1])}), nil
		case len(all) == 0:
		case columns == nil:
			if columns = sampleColumnsOf(row); columns != nil {
				first = -1
			}
		case len(row) == columns.width:
			at, ok := codeAddress(row[columns.address])
			if !ok {
				continue
			}
			if first < 0 {
				first = at
			}
			launch := &all[len(all)-1]
			if s := columns.sample(row); s.Samples > 0 && at >= first && len(launch.Instructions) < maxSampled {
				s.At = at - first
				launch.Instructions = append(launch.Instructions, s)
				launch.All += s.Samples
			}
		}
	}
}

// sampleColumns is where a table has what.
type sampleColumns struct {
	width, address, source, samples int
	reasons                         map[int]string
}

// sampleColumnsOf reads a header; nil if the row is none. Versions have further columns, and one for the number of the row.
func sampleColumnsOf(row []string) *sampleColumns {
	c := &sampleColumns{width: len(row), address: slices.Index(row, "Address"), source: slices.Index(row, "Source"), samples: slices.Index(row, columnSamples), reasons: map[int]string{}}
	if c.address < 0 || c.source < 0 {
		return nil
	}
	if c.samples < 0 {
		c.samples = slices.Index(row, "# Samples")
	}
	for i, name := range row {
		if reason, ok := strings.CutPrefix(name, columnReason); ok && !strings.Contains(reason, "(") && reason != "selected" && reason != "not_selected" {
			c.reasons[i] = shortened(reason)
		}
	}
	return c
}

func (c *sampleColumns) sample(row []string) Sample {
	s := Sample{Text: shortened(strings.Join(strings.Fields(row[c.source]), " "))}
	if c.samples >= 0 {
		s.Samples = sampleCount(row[c.samples])
	}
	most := 0
	for i, reason := range c.reasons {
		if n := sampleCount(row[i]); n > most || n == most && n > 0 && reason < s.Reason {
			most, s.Reason = n, reason
		}
	}
	return s
}

// maxSampleText is the most bytes of a name or an instruction that is kept.
const maxSampleText = 160

func shortened(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxSampleText)], "")
}

// sampleCount is a cell with a count; 0 for none. Counts are far below a billion.
func sampleCount(cell string) int {
	v, _, ok, err := parseValue(cell)
	if err != nil || !ok || v < 0 || v > 1e9 {
		return 0
	}
	return int(v)
}

// codeAddress reads the address of an instruction, which is hexadecimal with or without 0x.
func codeAddress(cell string) (int, bool) {
	v, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(cell), "0x"), 16, 63)
	return int(v), err == nil
}
