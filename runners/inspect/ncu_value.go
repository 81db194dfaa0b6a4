package inspect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	// Commas stand between thousands or nowhere: under another locale 65,77 means 65.77, and must not be read as 6577.
	numberPrefix = regexp.MustCompile(`^[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?`)
	startsNumber = regexp.MustCompile(`^[+-]?\.?\d`)
	unitText     = regexp.MustCompile(`^(?:%|[A-Za-z]+(?:/[A-Za-z]+)*)$`)
	instances    = regexp.MustCompile(`^\(.*\)$`)
)

// parseValue reads a cell. It has a value, or none (n/a, nan, a text such as the GPU's name), or it looks like a
// number and is none, which is an error. A unit beside the number is returned too.
func parseValue(cell string) (value float64, unit string, ok bool, err error) {
	// ncu marks what it could not collect with (!).
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
